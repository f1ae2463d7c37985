"""One lease's rows in the order that every ledger shows them."""

from collections.abc import Iterable

from hostler.model.lease import Backup, Intent, Job, Lease, LeaseView, Node, Receipt, Record


def make_view(rows: Iterable[Record]) -> LeaseView | None:
    """Returns the rows of a lease in the view's order; None when the lease itself is not among them."""
    records = tuple(rows)
    lease = next((record for record in records if isinstance(record, Lease)), None)
    if lease is None:
        return None
    intents = sorted((row for row in records if isinstance(row, Intent)), key=lambda row: (row.slot_index, row.attempt))
    attempts = {intent.intent_id: intent.attempt for intent in intents}
    nodes = [row for row in records if isinstance(row, Node)]
    jobs = [row for row in records if isinstance(row, Job)]
    backups = [row for row in records if isinstance(row, Backup)]
    return LeaseView(
        lease=lease,
        intents=tuple(intents),
        nodes=tuple(sorted(nodes, key=lambda row: (row.slot_index, attempts.get(row.intent_id, 0), row.node_name))),
        jobs=tuple(sorted(jobs, key=lambda row: (row.attempt, row.job_id))),
        backups=tuple(sorted(backups, key=lambda row: (row.sealed_at, row.backup_id))),
        receipt=next((row for row in records if isinstance(row, Receipt)), None),
    )
