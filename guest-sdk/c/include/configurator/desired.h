/*
 * Sets: all that an owner is to have. The owner is the object that the run is about.
 *
 *     cfgr_output_desired_entry(output, "password", cfgr_secret_content("shop-db"), .on_delete = CFGR_ON_DELETE_RETAIN);
 *     cfgr_output_desired_entry(output, "database", stateful_set, .depends_on = CFGR_NAMES("password"));
 *     cfgr_output_desired(output, .termination_policy_at = ".spec.terminationPolicy");
 *
 * The host deletes what an earlier set had and this one lacks.
 */
#ifndef CONFIGURATOR_DESIRED_H
#define CONFIGURATOR_DESIRED_H

#include "compiler.h"
#include "content.h"
#include "request.h"

/* A member exists that belongs to no set. */
typedef enum cfgr_on_existing {
    /* As CFGR_ON_EXISTING_REFUSE. */
    CFGR_ON_EXISTING_UNSAID,
    /* The entry fails. */
    CFGR_ON_EXISTING_REFUSE,
    /* The set takes it over. */
    CFGR_ON_EXISTING_ADOPT,
    /* The set creates the member if it is absent, and never changes it afterwards, whoever created it. */
    CFGR_ON_EXISTING_CREATE_ONLY,
} cfgr_on_existing;

/* Another field manager has a field that the entry sets to another value. */
typedef enum cfgr_on_conflict {
    /* As CFGR_ON_CONFLICT_FAIL. */
    CFGR_ON_CONFLICT_UNSAID,
    /* The entry fails. */
    CFGR_ON_CONFLICT_FAIL,
    /* The set takes the field over. */
    CFGR_ON_CONFLICT_FORCE,
} cfgr_on_conflict;

/* The server refuses a change because a field is immutable. */
typedef enum cfgr_on_immutable {
    /* As CFGR_ON_IMMUTABLE_FAIL. */
    CFGR_ON_IMMUTABLE_UNSAID,
    /* The entry fails. */
    CFGR_ON_IMMUTABLE_FAIL,
    /* The host deletes the member and creates it again. */
    CFGR_ON_IMMUTABLE_RECREATE,
} cfgr_on_immutable;

/* The owner is deleted, or a later set has no such entry. */
typedef enum cfgr_on_delete {
    /* As CFGR_ON_DELETE_WITH_OWNER. */
    CFGR_ON_DELETE_UNSAID,
    /* The member is deleted. */
    CFGR_ON_DELETE_WITH_OWNER,
    /* The member stays, and belongs to no set any more. */
    CFGR_ON_DELETE_RETAIN,
    /* The member is deleted under CFGR_TERMINATION_WIPE_OUT, and stays otherwise. */
    CFGR_ON_DELETE_ONLY_UNDER_WIPE_OUT,
} cfgr_on_delete;

/* One member that the owner is to have; added to an output by cfgr_output_desired_entry. */
typedef struct cfgr_desired_entry {
    /* Names the entry in `depends_on`, in orders and in results. No two entries and requests of one output share a name. */
    const char *name;
    cfgr_content content;
    /* Names of entries that must be ready first. */
    cfgr_names depends_on;
    /* When the entry is ready. Default: healthy for a Kubernetes object, exists for all else. */
    cfgr_readiness ready_when;
    /* A CEL expression over `object`, or NULL. The entry has failed while it is true. */
    const char *failed_when;
    /* How long the entry may take to be ready after it was written, or after it was ready last; 0: no limit. */
    uint64_t timeout_ms;
    cfgr_on_existing on_existing;
    cfgr_on_conflict on_conflict;
    cfgr_on_immutable on_immutable;
    /* Paths of fields that the host does not set or correct once the object exists: `.spec.replicas`. For Kubernetes objects. */
    cfgr_names ignored_paths;
    cfgr_on_delete on_delete;
} cfgr_desired_entry;

/* A list of entries. */
typedef struct cfgr_desired_entries {
    cfgr_desired_entry *items;
    size_t count, capacity;
} cfgr_desired_entries;

/* What becomes of the members when the owner is deleted. */
typedef enum cfgr_termination_policy {
    /* As CFGR_TERMINATION_DELETE. */
    CFGR_TERMINATION_UNSAID,
    /* Owner and members stay. */
    CFGR_TERMINATION_DO_NOT_TERMINATE,
    /* All but volumes, volume claims and volume snapshots is deleted. */
    CFGR_TERMINATION_KEEP_VOLUMES,
    /* All is deleted that `on_delete` does not keep. */
    CFGR_TERMINATION_DELETE,
    /* As CFGR_TERMINATION_DELETE, with what is kept under every other policy. */
    CFGR_TERMINATION_WIPE_OUT,
} cfgr_termination_policy;

/* Groups of names, each after the one before it. */
typedef struct cfgr_groups {
    const cfgr_names *items;
    size_t count;
} cfgr_groups;

/* Groups for an order: `.provision = CFGR_GROUPS(CFGR_NAMES("a"), CFGR_NAMES("b", "c"))`. */
#define CFGR_GROUPS(...) \
    ((cfgr_groups){(const cfgr_names[]){__VA_ARGS__}, sizeof((const cfgr_names[]){__VA_ARGS__}) / sizeof(cfgr_names)})

/* Options of a set. An order replaces the dependencies between the entries that it names; an empty one changes nothing. */
typedef struct cfgr_desired_options {
    /* Deletes all members if there are no entries. Without this flag, a set without entries is an error. */
    bool allow_empty;
    cfgr_termination_policy termination_policy;
    /* A path into the owner, such as `.spec.terminationPolicy`, to one of `DoNotTerminate`, `KeepVolumes`, `Delete` and `WipeOut`, or NULL.
     * The host reads it when the owner is deleted, without the handler. It takes the place of `termination_policy`. */
    const char *termination_policy_at;
    /* The order of creation. */
    cfgr_groups provision;
    /* The order of updates. */
    cfgr_groups update;
    /* The order of deletion: the first group is deleted first. */
    cfgr_groups terminate;
} cfgr_desired_options;

/* All that the owner is to have. */
typedef struct cfgr_desired_set {
    /* False where no handler has returned a set. */
    bool is_said;
    /* In any order: `depends_on` and the orders decide. */
    cfgr_desired_entries entries;
    cfgr_desired_options options;
    /* Executed when the owner is being deleted, before any member is. Each waits for what it names in `depends_on`. The host stores them
     * encrypted, and executes those of the newest set that was ready. */
    cfgr_requests pre_terminate;
} cfgr_desired_set;

#endif
