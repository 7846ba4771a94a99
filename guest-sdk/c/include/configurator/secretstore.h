/* Requests to the secret store. */
#ifndef CONFIGURATOR_SECRETSTORE_H
#define CONFIGURATOR_SECRETSTORE_H

#include "compiler.h"
#include "json.h"

typedef enum cfgr_secret_verb {
    CFGR_SECRET_GET,
    CFGR_SECRET_CREATE,
    CFGR_SECRET_UPDATE,
    CFGR_SECRET_DELETE,
} cfgr_secret_verb;

/* A request to the secret store; made by the functions below. */
typedef struct cfgr_secret {
    cfgr_secret_verb verb;
    const char *name;
    /* A document, or NULL. */
    const char *value;
    /* Of CFGR_SECRET_UPDATE: the version that is stored; 0: there is none. */
    uint64_t version;
} cfgr_secret;

/*
 * Reads the secret: `{"name", "version", "value"}`. Keep the value out of log lines, Events and statuses; the host redacts it there, and in
 * messages of faults, as a second line of defence.
 */
cfgr_secret cfgr_secret_get(const char *name);

/* Creates the secret with a value that the host generates; one that exists is success. */
cfgr_secret cfgr_secret_create(const char *name);

/* Creates the secret with this value; one that exists is success and keeps its value. A value that is absent is a mistake of the handler, and
 * ends the call: cfgr_null() is one. */
cfgr_secret cfgr_secret_create_with(const char *name, cfgr_json value);

/* Writes a value that the host generates in the place of this version; 0 stands for a secret that is absent. Another version is a
 * conflict. */
cfgr_secret cfgr_secret_update(const char *name, uint64_t version);

/* Writes this value in the place of this version; 0 stands for a secret that is absent. Another version is a conflict, unless it has the
 * value already. A value that is absent is a mistake, as for cfgr_secret_create_with. */
cfgr_secret cfgr_secret_update_with(const char *name, uint64_t version, cfgr_json value);

/* Deletes the secret. One that is absent is success. */
cfgr_secret cfgr_secret_delete(const char *name);

#endif
