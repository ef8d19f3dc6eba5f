/* Three speculative loops over a scripted model, traced as an engine would be.
 *
 * The script on stdin is one word of the model a line; the time that each pass takes is fixed, so
 * that a test knows every field of every cycle:
 *     request PROMPT_TOKENS       starts a request        end FINISH        ends it
 *     legacy RIGHT MARGIN RIGHT   draft 1 right or not, draft 2's margin, draft 2 right or not
 *     depth1 MARGIN RIGHT         the draft at hand: its margin, right or not
 *     block N RIGHT ROOM          N drafts, of which the first RIGHT agree; ROOM tokens fit
 * Tokens are numbered as they come; a wrong draft is a right one plus 5,000.
 */
#include "tauscope_trace.h"

#include <stdio.h>

enum { WRONG = 5000 };

static tauscope_trace trace;
static tauscope_request request;
static const double threshold = 3.0;
static int position;
static double time_ms;

/* The engine's passes, which here only take their time. */
static double clock_ms(void) { return time_ms; }
static double target_pass(int tokens) { return time_ms += 24.0 + tokens, tauscope_ms(&trace); }
static double draft_pass(void) { return time_ms += 2.5, tauscope_ms(&trace); }
static double snapshot(void) { return time_ms += 0.25, tauscope_ms(&trace); }
static double repair(void) { return time_ms += 0.75, tauscope_ms(&trace); }

static void output(int tokens) {
    while (tokens-- > 0) tauscope_token(&request, position++);
}

/* Base decode; draft 1, judged for free; draft 2 behind a gate. */
static void legacy(int right1, double margin, int right2) {
    const double start = tauscope_ms(&trace), based = target_pass(1);
    double drafted = draft_pass();
    tauscope_cycle cycle = TAUSCOPE_CYCLE;
    cycle.pos = position;
    cycle.base_ms = based - start;
    cycle.drafted = cycle.free_checked = 1;
    cycle.verified = cycle.accepted = 0;
    cycle.target_forwards = 1;
    cycle.emitted = 1;
    cycle.draft_token = position + 1 + (right1 ? 0 : WRONG);
    cycle.next_token = position + 1;
    if (right1) {
        cycle.free_accepted = 1;
        cycle.emitted = cycle.target_forwards = cycle.drafted = 2;
        drafted = draft_pass();
        cycle.margin = margin;
        cycle.threshold = threshold;
        cycle.draft_token = position + 2 + (right2 ? 0 : WRONG);
        cycle.next_token = position + 2; /* folded or not, the target has spoken by then */
        if (margin < threshold) {
            cycle.path = "margin-skip";
            cycle.outcome = TAUSCOPE_FOLDED;
            cycle.decode_ms = target_pass(1) - drafted;
        } else {
            const double safe = snapshot(), verified = target_pass(2);
            cycle.path = "micro";
            cycle.snapshot_ms = safe - drafted;
            cycle.verify_ms = verified - safe;
            cycle.verified = 1;
            cycle.accepted = right2;
            cycle.emitted += right2;
            if (!right2) cycle.commit_ms = repair() - verified;
        }
    }
    cycle.draft_ms = drafted - based;
    cycle.wall_ms = tauscope_ms(&trace) - start;
    tauscope_record(&trace, &request, &cycle);
    output(cycle.emitted);
}

/* One pass over the base token and the draft at hand, or over the base token alone. */
static void depth1(double margin, int right) {
    const double start = tauscope_ms(&trace);
    double passed;
    tauscope_cycle cycle = TAUSCOPE_CYCLE;
    cycle.pos = position;
    cycle.drafted = 1;
    cycle.verified = cycle.accepted = 0;
    cycle.target_forwards = 1;
    cycle.emitted = 1;
    cycle.margin = margin;
    cycle.threshold = threshold;
    cycle.draft_token = position + 1 + (right ? 0 : WRONG);
    cycle.next_token = position + 1;
    if (margin < threshold) {
        passed = target_pass(1);
        cycle.outcome = TAUSCOPE_FOLDED;
        cycle.decode_ms = passed - start;
    } else {
        passed = target_pass(2);
        cycle.verified = 1;
        cycle.accepted = right;
        cycle.emitted = 1 + right;
        cycle.verify_ms = passed - start;
    }
    cycle.draft_ms = draft_pass() - passed; /* for the next cycle, paid in this one */
    cycle.wall_ms = tauscope_ms(&trace) - start;
    tauscope_record(&trace, &request, &cycle);
    output(cycle.emitted);
}

/* Base decode; N drafts, the first judged for free, the others in one pass. */
static void block(int n, int right, int room) {
    const double start = tauscope_ms(&trace), based = target_pass(1);
    double drafted = based, verified;
    int i;
    tauscope_cycle cycle = TAUSCOPE_CYCLE;
    for (i = 0; i < n; i++) drafted = draft_pass();
    cycle.path = "block";
    cycle.pos = position;
    cycle.base_ms = based - start;
    cycle.drafted = n;
    cycle.verified = cycle.accepted = 0;
    cycle.target_forwards = cycle.emitted = 1;
    if (n) {
        cycle.draft_ms = drafted - based;
        cycle.free_checked = 1;
        cycle.free_accepted = right > 0;
    } else {
        cycle.outcome = TAUSCOPE_BYPASSED;
    }
    if (right) { /* a single draft needs no judging any more, but a pass all the same */
        verified = target_pass(n > 1 ? n - 1 : 1);
        cycle.verify_ms = verified - drafted;
        cycle.verified = n - 1;
        cycle.accepted = right - 1;
        cycle.target_forwards = 2;
        if ((cycle.replayed = right < n)) {
            cycle.commit_ms = repair() - verified;
            cycle.target_forwards = 3;
        }
    }
    cycle.emitted = 1 + right;
    if (cycle.emitted > room) {
        cycle.emitted = room;
        cycle.truncated = 1;
    }
    cycle.wall_ms = tauscope_ms(&trace) - start;
    tauscope_record(&trace, &request, &cycle);
    output(cycle.emitted);
}

int main(void) {
    char line[256], finish[64];
    int a, b, c;
    double margin;
    tauscope_run run = TAUSCOPE_RUN;
    run.clock = clock_ms;
    run.engine = "loop";
    run.model = "scripted \"model\" \xe6\xb5\x8b\xe8\xaf\x95";
    run.draft_depth = 4;
    run.threshold = threshold;
    run.backend = "none";
    run.ctx = 4096;
    tauscope_open(&trace, &run);
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "request %d", &a) == 1) {
            const tauscope_request fresh = TAUSCOPE_REQUEST;
            request = fresh;
            request.prompt_tokens = a;
            tauscope_begin(&trace, &request);
            request.prefill_ms = -tauscope_ms(&trace);
            request.prefill_ms += target_pass(a);
            position = a;
        } else if (sscanf(line, "end %63s", finish) == 1) {
            request.finish = finish;
            tauscope_end(&trace, &request);
        } else if (sscanf(line, "legacy %d %lf %d", &a, &margin, &b) == 3) {
            legacy(a, margin, b);
        } else if (sscanf(line, "depth1 %lf %d", &margin, &a) == 2) {
            depth1(margin, a);
        } else if (sscanf(line, "block %d %d %d", &a, &b, &c) == 3) {
            block(a, b, c);
        }
    }
    tauscope_close(&trace);
    return 0;
}
