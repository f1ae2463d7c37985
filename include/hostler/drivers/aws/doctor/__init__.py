"""Whether an account is fit for a deployment: reads, and dry runs of what buys and ends."""
