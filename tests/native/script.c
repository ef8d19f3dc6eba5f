/* Plays a script of trace calls from stdin, so that a test can compare the bytes of the C header
 * with those of its Python twin. One call a line: a letter, then fields separated by tabs; `~`
 * stands for a value that is left unknown, texts come as hex. */
#include "tauscope_trace.h"

#include <stdio.h>

enum { WIDTH = 32, REQUESTS = 64 };

static double clock_now;
static double clock_read(void) { return clock_now; }

static char *text(char *hex) {
    char *from = hex, *to = hex;
    if (*hex == '~') return NULL;
    for (; from[0] && from[1]; from += 2) {
        char pair[3] = {from[0], from[1], 0};
        *to++ = (char)strtol(pair, NULL, 16);
    }
    *to = 0;
    return hex;
}

static int64_t whole(const char *field) { return *field == '~' ? -1 : strtoll(field, NULL, 10); }
static int small(const char *field) { return (int)whole(field); }
static double real(const char *field) {
    return *field == '~' ? TAUSCOPE_UNKNOWN : strtod(field, NULL);
}

int main(int argc, char **argv) {
    static tauscope_trace trace;
    static tauscope_request requests[REQUESTS];
    static char line[1 << 16];
    int i;
    (void)argc;
    for (i = 0; i < REQUESTS; i++) {
        const tauscope_request fresh = TAUSCOPE_REQUEST;
        requests[i] = fresh;
    }
    while (fgets(line, sizeof line, stdin)) {
        char *f[WIDTH], *at = line;
        int n = 0;
        line[strcspn(line, "\n")] = 0;
        while (n < WIDTH) {
            f[n++] = at;
            at = strchr(at, '\t');
            if (!at) break;
            *at++ = 0;
        }
        if (line[0] == 't') {
            clock_now = real(f[1]);
        } else if (line[0] == 'o') {
            tauscope_run run = TAUSCOPE_RUN;
            run.path = argv[1];
            run.token = text(f[1]);
            run.clock = clock_read;
            run.pid = whole(f[2]);
            run.unix_ms = whole(f[3]);
            run.engine = text(f[4]);
            run.engine_version = text(f[5]);
            run.model = text(f[6]);
            run.drafter = text(f[7]);
            run.draft_depth = small(f[8]);
            run.threshold = real(f[9]);
            run.arm = text(f[10]);
            run.backend = text(f[11]);
            run.machine = text(f[12]);
            run.ctx = whole(f[13]);
            tauscope_open(&trace, &run);
        } else if (line[0] == 'b') {
            tauscope_request request = TAUSCOPE_REQUEST;
            request.engine_id = text(f[2]);
            request.workload = text(f[3]);
            request.prompt_id = text(f[4]);
            request.prompt_tokens = whole(f[5]);
            request.cached_tokens = whole(f[6]);
            tauscope_begin(&trace, &request);
            requests[small(f[1])] = request;
        } else if (line[0] == 'h') {
            tauscope_token(&requests[small(f[1])], (int32_t)strtol(f[2], NULL, 10));
        } else if (line[0] == 'c') {
            tauscope_cycle cycle = TAUSCOPE_CYCLE;
            cycle.outcome = (tauscope_outcome)small(f[2]);
            cycle.pos = whole(f[3]);
            cycle.path = text(f[4]);
            cycle.drafted = small(f[5]);
            cycle.free_checked = small(f[6]);
            cycle.free_accepted = small(f[7]);
            cycle.verified = small(f[8]);
            cycle.accepted = small(f[9]);
            cycle.resampled = small(f[10]);
            cycle.emitted = small(f[11]);
            cycle.truncated = small(f[12]);
            cycle.target_forwards = small(f[13]);
            cycle.replayed = small(f[14]);
            cycle.margin = real(f[15]);
            cycle.threshold = real(f[16]);
            cycle.draft_token = small(f[17]);
            cycle.next_token = small(f[18]);
            cycle.base_ms = real(f[19]);
            cycle.draft_ms = real(f[20]);
            cycle.snapshot_ms = real(f[21]);
            cycle.verify_ms = real(f[22]);
            cycle.commit_ms = real(f[23]);
            cycle.decode_ms = real(f[24]);
            cycle.wall_ms = real(f[25]);
            tauscope_record(&trace, *f[1] == '~' ? NULL : &requests[small(f[1])], &cycle);
        } else if (line[0] == 'e') {
            tauscope_request *request = &requests[small(f[1])];
            request->generated_tokens = whole(f[2]);
            request->prefill_ms = real(f[3]);
            request->decode_ms = real(f[4]);
            request->finish = text(f[5]);
            request->error = text(f[6]);
            tauscope_end(&trace, request);
        }
    }
    tauscope_close(&trace);
    return 0;
}
