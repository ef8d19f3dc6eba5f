/* Times every record of a full cycle; prints nanoseconds: median, 99.9th percentile, greatest,
 * the clock's own cost (not subtracted), and one call with the trace off. */
#include <stdio.h>

#include "tauscope_trace.h"

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    const int n = argc > 1 ? atoi(argv[1]) : 200000;
    double *took = (double *)malloc(sizeof(double) * (size_t)n), start, clock_ns, off_ns;
    static tauscope_trace trace, off;
    tauscope_run run = TAUSCOPE_RUN;
    tauscope_request request = TAUSCOPE_REQUEST;
    int i;
    if (!took) return 1;
    run.engine = "bench";
    tauscope_open(&trace, &run);
    tauscope_begin(&trace, &request);
    for (i = 0; i < n; i++) {
        tauscope_cycle cycle = TAUSCOPE_CYCLE;
        start = tauscope_clock_();
        cycle.path = "micro";
        cycle.pos = 4096 + i;
        cycle.drafted = 2;
        cycle.free_checked = cycle.free_accepted = cycle.verified = cycle.accepted = 1;
        cycle.emitted = 3;
        cycle.target_forwards = 2;
        cycle.replayed = 0;
        cycle.margin = 3.5 + i % 1000 * 1e-3;
        cycle.threshold = 3;
        cycle.draft_token = i & 0xffff;
        cycle.next_token = i & 0xffff;
        cycle.base_ms = 25.71 + i % 7;
        cycle.draft_ms = 2.25 + i % 3;
        cycle.snapshot_ms = 0.11;
        cycle.verify_ms = 27.313 + i % 11;
        cycle.commit_ms = 0.42;
        cycle.decode_ms = 25.5;
        cycle.wall_ms = 55.831 + i % 13;
        tauscope_record(&trace, &request, &cycle);
        tauscope_token(&request, i);
        took[i] = (tauscope_clock_() - start) * 1e6;
    }
    if (!tauscope_on(&trace)) return 2;
    tauscope_end(&trace, &request);
    tauscope_close(&trace);
    start = tauscope_clock_();
    for (i = 0; i < n; i++) tauscope_clock_();
    clock_ns = (tauscope_clock_() - start) * 1e6 / n;
    start = tauscope_clock_();
    for (i = 0; i < n; i++) {
        tauscope_cycle cycle = TAUSCOPE_CYCLE;
        tauscope_record(&off, &request, &cycle);
        __asm__ volatile("" ::: "memory"); /* the branch is taken anew each time */
    }
    off_ns = (tauscope_clock_() - start) * 1e6 / n;
    qsort(took, (size_t)n, sizeof *took, by_size);
    printf("%.0f %.0f %.0f %.1f %.2f\n", took[n / 2], took[(int)(n * 0.999)], took[n - 1], clock_ns,
           off_ns);
    free(took);
    return 0;
}
