/* What can go wrong around a trace; prints `done` when the engine's own work went through. */
#include "tauscope_trace.h"

#include <stdio.h>
#include <sys/wait.h>

static tauscope_trace trace;

static void cycles(tauscope_request *request, int n) {
    int i;
    for (i = 0; i < n; i++) {
        tauscope_cycle cycle = TAUSCOPE_CYCLE;
        cycle.drafted = cycle.verified = cycle.accepted = 1;
        cycle.emitted = 2;
        cycle.pos = i;
        cycle.wall_ms = 28.5;
        tauscope_record(&trace, request, &cycle);
        tauscope_token(request, i);
    }
}

static void *generation(void *count) {
    tauscope_request request = TAUSCOPE_REQUEST;
    tauscope_begin(&trace, &request);
    cycles(&request, *(int *)count);
    tauscope_end(&trace, &request);
    return NULL;
}

/* MODE COUNT [OTHER]: plain, threads, fork, closed, replaced (OTHER takes the descriptor). */
int main(int argc, char **argv) {
    const char *mode = argc > 2 ? argv[1] : "";
    int count = argc > 2 ? atoi(argv[2]) : 0, i;
    tauscope_run run = TAUSCOPE_RUN;
    tauscope_open(&trace, &run);
    if (!strcmp(mode, "threads")) {
        pthread_t threads[4];
        for (i = 0; i < 4; i++) pthread_create(&threads[i], NULL, generation, &count);
        for (i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    } else if (!strcmp(mode, "fork")) {
        tauscope_request request = TAUSCOPE_REQUEST;
        tauscope_begin(&trace, &request);
        cycles(&request, count); /* still in the buffer when the children start */
        for (i = 0; i < 2; i++) {
            const pid_t child = fork();
            if (child == 0) {
                if (i == 1) generation(&count); /* the first child says nothing */
                tauscope_close(&trace);
                _exit(0);
            }
            waitpid(child, NULL, 0);
        }
        cycles(&request, 1);
        tauscope_end(&trace, &request);
    } else if (!strcmp(mode, "busyfork")) { /* forks while other threads hold the lock */
        pthread_t threads[3];
        for (i = 0; i < 3; i++) pthread_create(&threads[i], NULL, generation, &count);
        for (i = 0; i < 20; i++) {
            int one = 1;
            const pid_t child = fork();
            if (child == 0) {
                generation(&one);
                _exit(0);
            }
            waitpid(child, NULL, 0);
        }
        for (i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    } else if (!strcmp(mode, "closed") || !strcmp(mode, "replaced")) {
        close(trace.fd);
        if (argc > 3 && open(argv[3], O_WRONLY | O_CREAT | O_APPEND, 0666) != trace.fd) return 3;
        generation(&count);
    } else {
        generation(&count);
    }
    printf("%s\n", tauscope_on(&trace) ? "done on" : "done off");
    tauscope_close(&trace);
    return 0;
}
