/* Events: lines "<index> <xid>" that are appended to xid.events after the set was made. */
typedef struct { Device *device; unsigned long long type, data; unsigned gpu_instance, compute_instance; } EventData;
static FILE *events_file(void)
{
    char path[PATH_MAX] = "";
    state_path(path, "xid.events");
    return fopen(path, "r");
}
int nvmlEventSetCreate(EventSet **set)
{
    if (!started) return UNINITIALIZED;
    *set = calloc(1, sizeof **set);
    FILE *file = events_file();
    if (file) {
        fseek(file, 0, SEEK_END);
        (*set)->offset = ftell(file);
        fclose(file);
    }
    return *set ? SUCCESS : UNKNOWN;
}
int nvmlEventSetFree(EventSet *set) { return free(set), SUCCESS; }
int nvmlDeviceGetSupportedEventTypes(Device *device, unsigned long long *types) { (void)device; return *types = XID_EVENT, SUCCESS; }
int nvmlDeviceRegisterEvents(Device *device, unsigned long long types, EventSet *set)
{
    set->mask[device->index] |= types;
    return types & ~(unsigned long long)XID_EVENT ? NOT_SUPPORTED : SUCCESS;
}
static int next_event(EventSet *set, EventData *data)
{
    int index, xid, found = 0;
    char line[64];
    FILE *file = events_file();
    if (!file) return 0;
    fseek(file, set->offset, SEEK_SET);
    while (!found && fgets(line, sizeof line, file) && strchr(line, '\n')) {
        set->offset = ftell(file);
        found = sscanf(line, "%d %d", &index, &xid) == 2 && index >= 0 && index < MOST_DEVICES && set->mask[index] & XID_EVENT;
    }
    fclose(file);
    if (found) *data = (EventData){ &devices[index][0], XID_EVENT, (unsigned long long)xid, 0xffffffff, 0xffffffff };
    return found;
}
int nvmlEventSetWait_v2(EventSet *set, EventData *data, unsigned timeout_ms)
{
    for (unsigned waited = 0;; waited += 10) {
        if (next_event(set, data)) return SUCCESS;
        if (waited >= timeout_ms) return TIMEOUT;
        nanosleep(&(struct timespec){ 0, 10000000 }, NULL);
    }
}
int nvmlEventSetWait(EventSet *set, EventData *data, unsigned timeout_ms) { return nvmlEventSetWait_v2(set, data, timeout_ms); }
