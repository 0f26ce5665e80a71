/* A repository agent for the tests. Its parameters say what it does; it writes what it is told into the file of parameter `log`. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Error Error;
typedef struct Message Message;
typedef struct Agent Agent;
typedef struct Model Model;

Error *TRITONSERVER_ErrorNew(int code, const char *message);
void TRITONSERVER_ErrorDelete(Error *error);
const char *TRITONSERVER_ErrorMessage(Error *error);
Error *TRITONSERVER_MessageSerializeToJson(Message *message, const char **base, size_t *size);
Error *TRITONSERVER_MessageDelete(Message *message);
Error *TRITONREPOAGENT_ApiVersion(uint32_t *major, uint32_t *minor);
Error *TRITONREPOAGENT_ModelRepositoryLocation(Agent *agent, Model *model, int *type, const char **location);
Error *TRITONREPOAGENT_ModelRepositoryLocationAcquire(Agent *agent, Model *model, int type, const char **location);
Error *TRITONREPOAGENT_ModelRepositoryLocationRelease(Agent *agent, Model *model, const char *location);
Error *TRITONREPOAGENT_ModelRepositoryUpdate(Agent *agent, Model *model, int type, const char *location);
Error *TRITONREPOAGENT_ModelParameterCount(Agent *agent, Model *model, uint32_t *count);
Error *TRITONREPOAGENT_ModelParameter(Agent *agent, Model *model, uint32_t index, const char **name, const char **value);
Error *TRITONREPOAGENT_ModelConfig(Agent *agent, Model *model, uint32_t version, Message **config);
Error *TRITONREPOAGENT_ModelState(Model *model, void **state);
Error *TRITONREPOAGENT_ModelSetState(Model *model, void *state);
Error *TRITONREPOAGENT_State(Agent *agent, void **state);
Error *TRITONREPOAGENT_SetState(Agent *agent, void *state);

enum { FILESYSTEM, REMOTE };
enum { LOAD, LOAD_COMPLETE, LOAD_FAIL, UNLOAD, UNLOAD_COMPLETE };
enum { INTERNAL = 1, INVALID_ARG = 3, UNSUPPORTED = 5 };

static const char *const ACTIONS[] = {"load", "load complete", "load fail", "unload", "unload complete"};

static const char *parameter(Agent *agent, Model *model, const char *wanted) {
    uint32_t count = 0;
    TRITONREPOAGENT_ModelParameterCount(agent, model, &count);
    for (uint32_t index = 0; index < count; index++) {
        const char *name, *value;
        if (TRITONREPOAGENT_ModelParameter(agent, model, index, &name, &value) == NULL && strcmp(name, wanted) == 0) return value;
    }
    return "";
}

static int does(Agent *agent, Model *model, const char *what) {
    return strcmp(parameter(agent, model, "does"), what) == 0;
}

static void tell(Agent *agent, Model *model, const char *what, const char *more) {
    FILE *file = fopen(parameter(agent, model, "log"), "a");
    if (file == NULL) return;
    fprintf(file, "%s%s%s\n", what, *more ? ": " : "", more);
    fclose(file);
}

/* Writes an error down and deletes it. */
static void tell_error(Agent *agent, Model *model, const char *what, Error *error) {
    tell(agent, model, what, error == NULL ? "done" : TRITONSERVER_ErrorMessage(error));
    if (error != NULL) TRITONSERVER_ErrorDelete(error);
}

Error *TRITONREPOAGENT_Initialize(Agent *agent) {
    uint32_t major, minor;
    Error *error = TRITONREPOAGENT_ApiVersion(&major, &minor);
    if (error != NULL) return error;
    if (major != 0 || minor < 1) return TRITONSERVER_ErrorNew(UNSUPPORTED, "the agent needs version 0.1");
    return TRITONREPOAGENT_SetState(agent, "state of the agent");
}

Error *TRITONREPOAGENT_Finalize(Agent *agent) {
    return NULL;
}

Error *TRITONREPOAGENT_ModelInitialize(Agent *agent, Model *model) {
    void *state = NULL;
    TRITONREPOAGENT_State(agent, &state);
    tell(agent, model, "initialize", state);
    if (does(agent, model, "refuse to begin")) return TRITONSERVER_ErrorNew(INVALID_ARG, "the agent was told not to begin");
    return TRITONREPOAGENT_ModelSetState(model, strdup("none"));
}

Error *TRITONREPOAGENT_ModelFinalize(Agent *agent, Model *model) {
    void *state = NULL;
    TRITONREPOAGENT_ModelState(model, &state);
    if (state != NULL && strcmp(state, "none") != 0) {
        tell_error(agent, model, "release", TRITONREPOAGENT_ModelRepositoryLocationRelease(agent, model, state));
    }
    tell(agent, model, "finalize", "");
    free(state);
    return NULL;
}

/* Has the model loaded from an acquired folder with a copy of its files, to which the file `added` is added. */
static Error *replace(Agent *agent, Model *model, const char *from) {
    const char *to;
    char command[8192];
    void *state;
    Error *error = TRITONREPOAGENT_ModelRepositoryLocationAcquire(agent, model, FILESYSTEM, &to);
    if (error != NULL) return error;
    snprintf(command, sizeof command, "cp -r '%s'/. '%s' && echo added > '%s/added'", from, to, to);
    if (system(command) != 0) return TRITONSERVER_ErrorNew(INTERNAL, "the files cannot be copied");
    TRITONREPOAGENT_ModelState(model, &state);
    free(state);
    TRITONREPOAGENT_ModelSetState(model, strdup(to));
    return TRITONREPOAGENT_ModelRepositoryUpdate(agent, model, FILESYSTEM, to);
}

static void tell_config(Agent *agent, Model *model) {
    Message *config = NULL;
    const char *text;
    size_t size;
    char name[64] = "";
    tell_error(agent, model, "config 2", TRITONREPOAGENT_ModelConfig(agent, model, 2, &config));
    Error *error = TRITONREPOAGENT_ModelConfig(agent, model, 1, &config);
    if (error != NULL) return tell_error(agent, model, "config", error);
    TRITONSERVER_MessageSerializeToJson(config, &text, &size);
    const char *found = memchr(text, '{', size);
    snprintf(name, sizeof name, "%.*s", 20, found == NULL ? "" : found);
    tell(agent, model, "config", name);
    TRITONSERVER_MessageDelete(config);
}

Error *TRITONREPOAGENT_ModelAction(Agent *agent, Model *model, int action) {
    int type;
    const char *location = "";
    tell(agent, model, ACTIONS[action], "");
    Error *error = TRITONREPOAGENT_ModelRepositoryLocation(agent, model, &type, &location);
    if (error != NULL) return error;
    if (action == LOAD_COMPLETE && does(agent, model, "replace late")) {
        tell_error(agent, model, "late", TRITONREPOAGENT_ModelRepositoryUpdate(agent, model, FILESYSTEM, location));
    }
    if (does(agent, model, "refuse every action")) return TRITONSERVER_ErrorNew(INVALID_ARG, "the agent was told to refuse");
    if (action != LOAD) return NULL;
    tell(agent, model, type == FILESYSTEM ? "files" : "remote", location);
    if (does(agent, model, "tell")) tell_config(agent, model);
    if (does(agent, model, "refuse")) return TRITONSERVER_ErrorNew(INVALID_ARG, "the agent was told to refuse");
    if (does(agent, model, "replace")) return replace(agent, model, location);
    if (does(agent, model, "move")) return TRITONREPOAGENT_ModelRepositoryUpdate(agent, model, FILESYSTEM, parameter(agent, model, "to"));
    if (does(agent, model, "acquire elsewhere")) return TRITONREPOAGENT_ModelRepositoryLocationAcquire(agent, model, REMOTE, &location);
    return NULL;
}
