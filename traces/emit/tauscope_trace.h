/* tauscope_trace.h: what a speculative decode loop did, one line of JSON a cycle.
 *
 * For engines in C99 or C++11 on POSIX, compiled by GCC or Clang. One header, no library beyond
 * the C library. Fields and their meaning: traces/README.md of tauscope. In an engine:
 *
 *     static tauscope_trace trace;                                        // all zero: off
 *     tauscope_run run = TAUSCOPE_RUN; run.engine = "ds4"; run.draft_depth = 2;
 *     tauscope_open(&trace, &run);                                        // file: $TAUSCOPE_TRACE
 *     ...
 *     tauscope_request request = TAUSCOPE_REQUEST; request.prompt_tokens = n;
 *     tauscope_begin(&trace, &request);
 *         tauscope_cycle cycle = TAUSCOPE_CYCLE; cycle.drafted = 1; ... cycle.emitted = 2;
 *         tauscope_record(&trace, &request, &cycle);                      // once a cycle
 *         tauscope_token(&request, token);                                // once an output token
 *     tauscope_end(&trace, &request);
 *     ...
 *     tauscope_close(&trace);
 *
 * Without TAUSCOPE_TRACE in the environment every call is one branch. A field that you leave as
 * the initialiser set it is unknown and is left out of the line. Nothing here can fail for the
 * engine: the first error of the file ends the trace for good, and the engine never hears of it.
 * Lines are buffered; they are written when a request ends and when a second has passed.
 * All calls on one trace may come from several threads, except open and close; a request belongs
 * to one thread at a time. A forked child becomes a run of its own with its first record.
 *
 * MIT License
 *
 * Copyright (c) the tauscope authors
 *
 * Permission is hereby granted, free of charge, to any person obtaining a copy of this software
 * and associated documentation files (the "Software"), to deal in the Software without
 * restriction, including without limitation the rights to use, copy, modify, merge, publish,
 * distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the
 * Software is furnished to do so, subject to the following conditions:
 *
 * The above copyright notice and this permission notice shall be included in all copies or
 * substantial portions of the Software.
 *
 * THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING
 * BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
 * NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM,
 * DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
 * OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
 */
#ifndef TAUSCOPE_TRACE_H
#define TAUSCOPE_TRACE_H

#if !defined(__GNUC__)
#error "tauscope_trace.h needs GCC or Clang (for its atomic builtins)"
#endif

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* Unknown: a count below 0, a NULL text, a number that is not finite or reaches 2^43. No NaN is
 * used, because -ffast-math may forget what it means. */
#define TAUSCOPE_UNKNOWN (-1e300)

/* Raised when a reader of the older number would misread the newer one. */
#define TAUSCOPE_FORMAT "1"

enum {
    TAUSCOPE_BUFFER = 1 << 20, /* bytes; a busy engine fills about a hundredth of it a second */
    TAUSCOPE_LINE = 1 << 14,   /* no line is longer: 9 texts of 256 characters, 6 bytes each */
    TAUSCOPE_TEXT = 256,       /* characters of a text that are kept */
    TAUSCOPE_TOKEN = 96        /* bytes of a run token, its end included */
};

/* What the counts of a cycle can't tell. TAUSCOPE_COUNTS lets the reader derive the outcome. */
typedef enum tauscope_outcome {
    TAUSCOPE_COUNTS = 0,
    TAUSCOPE_FOLDED,     /* the gate declined */
    TAUSCOPE_BYPASSED,   /* a scheduler switched drafting off */
    TAUSCOPE_UNDRAFTED,  /* nothing could be drafted */
    TAUSCOPE_UNVERIFIED, /* drafts taken without a paid verification of any */
    TAUSCOPE_FALLBACK    /* the verifier failed; the engine went token by token */
} tauscope_outcome;

/* Facts of the run, all optional. path, token, clock, pid and unix_ms are for engines that keep
 * their own; left alone they are $TAUSCOPE_TRACE, a new token, a monotonic clock, the process's
 * id and the time of day. clock returns milliseconds and is called under the trace's lock. */
typedef struct tauscope_run {
    const char *path, *token;
    double (*clock)(void);
    int64_t pid, unix_ms;
    const char *engine, *engine_version, *model, *drafter;
    int draft_depth;
    double threshold;
    const char *arm, *backend, *machine;
    int64_t ctx;
} tauscope_run;

#define TAUSCOPE_RUN \
    { NULL, NULL, NULL, -1, -1, NULL, NULL, NULL, NULL, -1, TAUSCOPE_UNKNOWN, NULL, NULL, NULL, -1 }

/* One generation. The first group belongs to tauscope_begin, the second to tauscope_end;
 * generated_tokens left unknown becomes the number of tokens given to tauscope_token. */
typedef struct tauscope_request {
    const char *engine_id, *workload, *prompt_id;
    int64_t prompt_tokens, cached_tokens;
    int64_t generated_tokens;
    double prefill_ms, decode_ms;
    const char *finish, *error;
    int64_t number, tokens; /* kept by this header; number is 0 outside begin and end */
    uint64_t hash;
} tauscope_request;

#define TAUSCOPE_REQUEST \
    { NULL, NULL, NULL, -1, -1, -1, TAUSCOPE_UNKNOWN, TAUSCOPE_UNKNOWN, NULL, NULL, 0, 0, \
      TAUSCOPE_HASH }

/* One turn of the decode loop. free_*, resampled and truncated start at 0, not unknown: a path
 * that never judges a draft for free, draws anew or cuts short need not say so. */
typedef struct tauscope_cycle {
    tauscope_outcome outcome;
    int64_t pos;
    const char *path;
    int drafted, free_checked, free_accepted, verified, accepted, resampled, emitted;
    int truncated, target_forwards, replayed; /* truncated and replayed: 0, 1 or unknown */
    double margin, threshold;
    int draft_token, next_token;
    double base_ms, draft_ms, snapshot_ms, verify_ms, commit_ms, decode_ms, wall_ms;
} tauscope_cycle;

#define TAUSCOPE_CYCLE \
    { TAUSCOPE_COUNTS, -1, NULL, -1, 0, 0, -1, -1, 0, -1, 0, -1, -1, TAUSCOPE_UNKNOWN, \
      TAUSCOPE_UNKNOWN, -1, -1, TAUSCOPE_UNKNOWN, TAUSCOPE_UNKNOWN, TAUSCOPE_UNKNOWN, \
      TAUSCOPE_UNKNOWN, TAUSCOPE_UNKNOWN, TAUSCOPE_UNKNOWN, TAUSCOPE_UNKNOWN }

/* The trace itself; all zero is off. One per process, shared by address. */
typedef struct tauscope_trace {
    int on;
    int headed; /* this process's header is in the buffer or the file */
    int fd;
    dev_t device;
    ino_t inode;
    int64_t pid, shown_pid, unix_ms;
    double (*clock)(void);
    double start, flushed; /* ms on that clock */
    int64_t requests;
    size_t used;
    char *buffer;
    char *facts; /* the header line from the run's facts on, kept for forked children */
    char token[TAUSCOPE_TOKEN];
    pthread_mutex_t lock;
} tauscope_trace;

/* ---- the output hash: FNV-1a, 64 bits, over token ids as little-endian 32-bit integers ---- */

#define TAUSCOPE_HASH UINT64_C(0xcbf29ce484222325)

static inline uint64_t tauscope_hash(uint64_t hash, int32_t token) {
    uint32_t bits = (uint32_t)token;
    int i;
    for (i = 0; i < 4; i++) {
        hash = (hash ^ (bits & 0xff)) * UINT64_C(0x100000001b3);
        bits >>= 8;
    }
    return hash;
}

/* ---- text: no printf, whose decimals follow the locale and cost a microsecond ---- */

static inline char *tauscope_put_(char *at, const char *text, size_t size) {
    memcpy(at, text, size);
    return at + size;
}

#define TAUSCOPE_PUT_(at, literal) tauscope_put_((at), (literal), sizeof(literal) - 1)

static inline char *tauscope_put_digits_(char *at, uint64_t value, int at_least) {
    char digits[24];
    int n = 0;
    do {
        digits[n++] = (char)('0' + (int)(value % 10));
        value /= 10;
    } while (value || n < at_least);
    while (n) *at++ = digits[--n];
    return at;
}

/* `"name":` after a comma; names are ours and need no escapes. */
static inline char *tauscope_put_name_(char *at, const char *name) {
    at = TAUSCOPE_PUT_(at, ",\"");
    at = tauscope_put_(at, name, strlen(name));
    return TAUSCOPE_PUT_(at, "\":");
}

static inline char *tauscope_put_int_(char *at, const char *name, int64_t value) {
    if (value < 0) return at;
    return tauscope_put_digits_(tauscope_put_name_(at, name), (uint64_t)value, 1);
}

static inline char *tauscope_put_bool_(char *at, const char *name, int value) {
    if (value < 0) return at;
    at = tauscope_put_name_(at, name);
    return value ? TAUSCOPE_PUT_(at, "true") : TAUSCOPE_PUT_(at, "false");
}

/* A number with `places` decimals (3 or 6), halves away from zero. */
static inline char *tauscope_put_fixed_(char *at, const char *name, double value, int places) {
    const unsigned scale = places == 3 ? 1000u : 1000000u;
    volatile double scaled; /* rounded on its own: a fused multiply-add gives other digits */
    uint64_t bits, n;
    memcpy(&bits, &value, sizeof bits);
    if ((bits >> 52 & 0x7ff) >= 1023 + 43) return at; /* 2^43 and up, infinite, not a number */
    scaled = (value < 0 ? -value : value) * scale;
    n = (uint64_t)(scaled + 0.5);
    at = tauscope_put_name_(at, name);
    if (value < 0 && n) *at++ = '-';
    at = tauscope_put_digits_(at, n / scale, 1);
    *at++ = '.';
    return tauscope_put_digits_(at, n % scale, places);
}

/* Bytes of the UTF-8 character at `s`, or minus the bytes of the longest broken start of one. */
static inline int tauscope_utf8_(const unsigned char *s) {
    const unsigned char c = s[0];
    int need, i;
    if (c < 0x80) return 1;
    need = c >= 0xc2 && c <= 0xdf ? 1 : (c & 0xf0) == 0xe0 ? 2 : c >= 0xf0 && c <= 0xf4 ? 3 : 0;
    for (i = 1; i <= need; i++) {
        /* The second byte excludes overlong forms, surrogates and what is above U+10FFFF. */
        const unsigned char low = i > 1 ? 0x80 : c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
        const unsigned char high = i > 1 ? 0xbf : c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
        if (s[i] < low || s[i] > high) return -i;
    }
    return need ? need + 1 : -1;
}

static inline char *tauscope_put_text_(char *at, const char *name, const char *text) {
    const unsigned char *s = (const unsigned char *)text;
    int kept, size;
    if (!text) return at;
    at = tauscope_put_name_(at, name);
    *at++ = '"';
    for (kept = 0; *s && kept < TAUSCOPE_TEXT; kept++, s += size) {
        size = tauscope_utf8_(s);
        if (size < 0) {
            at = TAUSCOPE_PUT_(at, "\xef\xbf\xbd"); /* U+FFFD */
            size = -size;
        } else if (*s < 0x20) {
            at = TAUSCOPE_PUT_(at, "\\u00");
            *at++ = (char)('0' + (*s >> 4));
            *at++ = "0123456789abcdef"[*s & 15];
        } else {
            if (*s == '"' || *s == '\\') *at++ = '\\';
            at = tauscope_put_(at, (const char *)s, (size_t)size);
        }
    }
    *at++ = '"';
    return at;
}

/* ---- file and clock ---- */

/* Milliseconds on a clock that only means something in differences. */
static inline double tauscope_clock_(void) {
    struct timeval day;
#ifdef CLOCK_MONOTONIC
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) == 0)
        return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
#endif
    gettimeofday(&day, NULL);
    return (double)day.tv_sec * 1e3 + (double)day.tv_usec / 1e3;
}

static inline void tauscope_off_(tauscope_trace *trace) {
    __atomic_store_n(&trace->on, 0, __ATOMIC_RELEASE);
    trace->used = 0;
}

/* Writes whole lines in one call, so that two processes don't cut into each other's. Anything
 * odd ends the trace: the descriptor closed or now another file's, a full disk, a size limit
 * (whose signal would kill the engine). Needs the lock. */
static inline void tauscope_write_(tauscope_trace *trace) {
    const char *from = trace->buffer;
    struct stat file;
    struct rlimit limit;
    if (fstat(trace->fd, &file) != 0 || file.st_dev != trace->device ||
        file.st_ino != trace->inode ||
        (S_ISREG(file.st_mode) && getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
         limit.rlim_cur != RLIM_INFINITY &&
         (rlim_t)file.st_size + (rlim_t)trace->used > limit.rlim_cur)) {
        tauscope_off_(trace);
        return;
    }
    while (trace->used) {
        const ssize_t n = write(trace->fd, from, trace->used);
        if (n > 0) {
            from += n;
            trace->used -= (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            tauscope_off_(trace);
        }
    }
}

/* Tokens tell runs in one file apart; nothing secret, so clocks, ids and addresses will do. */
static inline void tauscope_new_token_(char *token, int64_t pid) {
    struct timeval day;
    uint64_t bits = (uint64_t)pid << 32 ^ (uint64_t)(uintptr_t)token;
    int i;
    gettimeofday(&day, NULL);
    bits ^= (uint64_t)day.tv_sec * 1000000u + (uint64_t)day.tv_usec;
    bits += (uint64_t)(tauscope_clock_() * 1e6);
    for (i = 0; i < 3; i++) {
        bits = (bits ^ bits >> 31) * UINT64_C(0x9e3779b97f4a7c15);
        bits ^= bits >> 29;
    }
    for (i = 0; i < 16; i++) token[i] = "0123456789abcdef"[bits >> (4 * i) & 15];
    token[16] = 0;
}

/* Opens every line; the token's characters were made harmless when it was taken over. */
static inline char *tauscope_put_start_(tauscope_trace *trace, char *at, const char *kind,
                                        double now) {
    at = TAUSCOPE_PUT_(at, "{\"tauscope\":" TAUSCOPE_FORMAT ",\"kind\":\"");
    at = tauscope_put_(at, kind, strlen(kind));
    at = TAUSCOPE_PUT_(at, "\",\"run\":\"");
    at = tauscope_put_(at, trace->token, strlen(trace->token));
    *at++ = '"';
    return tauscope_put_fixed_(at, "t_ms", now - trace->start, 3);
}

static inline void tauscope_put_header_(tauscope_trace *trace, double now) {
    char *at = tauscope_put_start_(trace, trace->buffer + trace->used, "run", now);
    at = tauscope_put_int_(at, "pid", trace->shown_pid);
    at = tauscope_put_int_(at, "unix_ms", trace->unix_ms);
    at = tauscope_put_(at, trace->facts, strlen(trace->facts));
    trace->used = (size_t)(at - trace->buffer);
    trace->headed = 1;
}

/* In a child after fork(): the lock may be held by a thread that is gone and the buffer holds
 * lines that the parent will write. Drops both; the child's token is `<parent's>.<pid>`. */
static inline void tauscope_forked_(tauscope_trace *trace, int64_t pid) {
    int64_t seen = __atomic_load_n(&trace->pid, __ATOMIC_ACQUIRE);
    char digits[24];
    size_t size, more;
    double now;
    do { /* the first thread puts -pid there and does the work, the others wait for pid */
        while (seen == -pid) seen = __atomic_load_n(&trace->pid, __ATOMIC_ACQUIRE);
        if (seen == pid) return;
    } while (!__atomic_compare_exchange_n(&trace->pid, &seen, -pid, 0, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    pthread_mutex_init(&trace->lock, NULL);
    trace->used = 0;
    trace->headed = 0;
    trace->requests = 0;
    trace->shown_pid = pid;
    now = trace->clock();
    trace->unix_ms += (int64_t)(now - trace->start);
    trace->start = trace->flushed = now;
    size = strlen(trace->token);
    more = (size_t)(tauscope_put_digits_(digits, (uint64_t)pid, 1) - digits);
    if (size + 1 + more < TAUSCOPE_TOKEN) {
        trace->token[size] = '.';
        memcpy(trace->token + size + 1, digits, more);
        trace->token[size + 1 + more] = 0;
    } else {
        tauscope_new_token_(trace->token, pid);
    }
    __atomic_store_n(&trace->pid, pid, __ATOMIC_RELEASE);
}

/* Locks the trace for one line. 0: the trace is off. */
static inline int tauscope_lock_(tauscope_trace *trace) {
    int64_t pid;
    if (!__atomic_load_n(&trace->on, __ATOMIC_ACQUIRE)) return 0;
    pid = (int64_t)getpid();
    if (__atomic_load_n(&trace->pid, __ATOMIC_ACQUIRE) != pid) tauscope_forked_(trace, pid);
    pthread_mutex_lock(&trace->lock);
    if (__atomic_load_n(&trace->on, __ATOMIC_RELAXED)) return 1;
    pthread_mutex_unlock(&trace->lock);
    return 0;
}

/* Where the next line starts; makes room, and puts a child's header first. Needs the lock. */
static inline char *tauscope_room_(tauscope_trace *trace, double now) {
    if (trace->used + 2 * TAUSCOPE_LINE > TAUSCOPE_BUFFER) tauscope_write_(trace);
    if (!trace->headed) tauscope_put_header_(trace, now);
    return trace->buffer + trace->used;
}

/* Ends the line that stops at `at`, writes when it is time, and unlocks. */
static inline void tauscope_done_(tauscope_trace *trace, char *at, double now, int flush) {
    at = TAUSCOPE_PUT_(at, "}\n");
    trace->used = (size_t)(at - trace->buffer);
    if (flush || now - trace->flushed >= 1000) {
        tauscope_write_(trace);
        trace->flushed = now;
    }
    pthread_mutex_unlock(&trace->lock);
}

/* ---- what an engine calls ---- */

static inline int tauscope_on(const tauscope_trace *trace) {
    return __atomic_load_n(&trace->on, __ATOMIC_RELAXED);
}

/* Milliseconds for taking times; 0 without a system call while the trace is off. */
static inline double tauscope_ms(const tauscope_trace *trace) {
    return tauscope_on(trace) ? trace->clock() : 0;
}

/* Opens the file and writes the header line. Any obstacle leaves the trace off: no path, no such
 * folder, a folder, a pipe or socket (whose reader could end and take the engine along). */
static inline void tauscope_open(tauscope_trace *trace, const tauscope_run *run) {
    const char *path = run->path ? run->path : getenv("TAUSCOPE_TRACE");
    const char *from = run->token;
    int flags = O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY;
    struct stat file;
    struct timeval day;
    size_t size;
    char *at;
    memset(trace, 0, sizeof *trace);
    if (!path || !*path) return;
#ifdef O_CLOEXEC
    flags |= O_CLOEXEC;
#endif
    trace->fd = open(path, flags, 0666);
    if (trace->fd < 0) return;
    fcntl(trace->fd, F_SETFD, FD_CLOEXEC);
    if (fstat(trace->fd, &file) != 0 || !(S_ISREG(file.st_mode) || S_ISCHR(file.st_mode)) ||
        !(trace->buffer = (char *)malloc(TAUSCOPE_BUFFER + TAUSCOPE_LINE))) {
        close(trace->fd);
        return;
    }
    memset(trace->buffer, 0, TAUSCOPE_BUFFER); /* so that no record pays for touching it first */
    trace->facts = trace->buffer + TAUSCOPE_BUFFER;
    trace->device = file.st_dev;
    trace->inode = file.st_ino;
    trace->pid = (int64_t)getpid();
    trace->shown_pid = run->pid >= 0 ? run->pid : trace->pid;
    gettimeofday(&day, NULL);
    trace->unix_ms = run->unix_ms >= 0 ? run->unix_ms
                                       : (int64_t)day.tv_sec * 1000 + (int64_t)day.tv_usec / 1000;
    trace->clock = run->clock ? run->clock : tauscope_clock_;
    trace->start = trace->flushed = trace->clock();
    pthread_mutex_init(&trace->lock, NULL);
    for (size = 0; from && *from && size < 64; from++, size++)
        trace->token[size] = (*from >= '0' && *from <= '9') || (*from >= 'A' && *from <= 'Z') ||
                                     (*from >= 'a' && *from <= 'z') || *from == '-' || *from == '.'
                                 ? *from
                                 : '_';
    if (!size) tauscope_new_token_(trace->token, trace->pid);
    at = trace->facts;
    at = tauscope_put_text_(at, "engine", run->engine);
    at = tauscope_put_text_(at, "engine_version", run->engine_version);
    at = tauscope_put_text_(at, "model", run->model);
    at = tauscope_put_text_(at, "drafter", run->drafter);
    at = tauscope_put_int_(at, "draft_depth", run->draft_depth);
    at = tauscope_put_fixed_(at, "threshold", run->threshold, 6);
    at = tauscope_put_text_(at, "arm", run->arm);
    at = tauscope_put_text_(at, "backend", run->backend);
    at = tauscope_put_text_(at, "machine", run->machine);
    at = tauscope_put_int_(at, "ctx", run->ctx);
    at = TAUSCOPE_PUT_(at, "}\n");
    *at = 0;
    tauscope_put_header_(trace, trace->start);
    trace->on = 1;
    tauscope_write_(trace);
}

/* Starts a request: gives it its number and forgets tokens hashed before. */
static inline void tauscope_begin(tauscope_trace *trace, tauscope_request *request) {
    double now;
    char *at;
    if (!tauscope_on(trace) || !tauscope_lock_(trace)) return;
    now = trace->clock();
    request->number = ++trace->requests;
    request->tokens = 0;
    request->hash = TAUSCOPE_HASH;
    at = tauscope_put_start_(trace, tauscope_room_(trace, now), "request", now);
    at = tauscope_put_int_(at, "request", request->number - 1);
    at = tauscope_put_text_(at, "engine_id", request->engine_id);
    at = tauscope_put_text_(at, "workload", request->workload);
    at = tauscope_put_text_(at, "prompt_id", request->prompt_id);
    at = tauscope_put_int_(at, "prompt_tokens", request->prompt_tokens);
    at = tauscope_put_int_(at, "cached_tokens", request->cached_tokens);
    tauscope_done_(trace, at, now, 0);
}

/* Counts and hashes one token of the request's output. */
static inline void tauscope_token(tauscope_request *request, int32_t token) {
    if (!request->number) return;
    request->hash = tauscope_hash(request->hash, token);
    request->tokens++;
}

/* Records one cycle; call it when the cycle is over. `request` may be NULL. */
static inline void tauscope_record(tauscope_trace *trace, const tauscope_request *request,
                                   const tauscope_cycle *cycle) {
    static const char *const outcomes[] = {NULL,         "folded",     "bypassed",
                                           "undrafted",  "unverified", "fallback"};
    double now;
    char *at;
    if (!tauscope_on(trace) || !tauscope_lock_(trace)) return;
    now = trace->clock();
    at = tauscope_put_start_(trace, tauscope_room_(trace, now), "cycle", now);
    if (request) at = tauscope_put_int_(at, "request", request->number - 1);
    at = tauscope_put_int_(at, "pos", cycle->pos);
    at = tauscope_put_text_(at, "path", cycle->path);
    if (cycle->outcome > TAUSCOPE_COUNTS && cycle->outcome <= TAUSCOPE_FALLBACK)
        at = tauscope_put_text_(at, "outcome", outcomes[cycle->outcome]);
    at = tauscope_put_int_(at, "drafted", cycle->drafted);
    at = tauscope_put_int_(at, "free_checked", cycle->free_checked);
    at = tauscope_put_int_(at, "free_accepted", cycle->free_accepted);
    at = tauscope_put_int_(at, "verified", cycle->verified);
    at = tauscope_put_int_(at, "accepted", cycle->accepted);
    at = tauscope_put_int_(at, "resampled", cycle->resampled);
    at = tauscope_put_int_(at, "emitted", cycle->emitted);
    at = tauscope_put_bool_(at, "truncated", cycle->truncated);
    at = tauscope_put_int_(at, "target_forwards", cycle->target_forwards);
    at = tauscope_put_bool_(at, "replayed", cycle->replayed);
    at = tauscope_put_fixed_(at, "margin", cycle->margin, 6);
    at = tauscope_put_fixed_(at, "threshold", cycle->threshold, 6);
    at = tauscope_put_int_(at, "draft_token", cycle->draft_token);
    at = tauscope_put_int_(at, "next_token", cycle->next_token);
    at = tauscope_put_fixed_(at, "base_ms", cycle->base_ms, 3);
    at = tauscope_put_fixed_(at, "draft_ms", cycle->draft_ms, 3);
    at = tauscope_put_fixed_(at, "snapshot_ms", cycle->snapshot_ms, 3);
    at = tauscope_put_fixed_(at, "verify_ms", cycle->verify_ms, 3);
    at = tauscope_put_fixed_(at, "commit_ms", cycle->commit_ms, 3);
    at = tauscope_put_fixed_(at, "decode_ms", cycle->decode_ms, 3);
    at = tauscope_put_fixed_(at, "wall_ms", cycle->wall_ms, 3);
    tauscope_done_(trace, at, now, 0);
}

/* Ends a request and writes everything so far; nothing happens when none was begun. */
static inline void tauscope_end(tauscope_trace *trace, tauscope_request *request) {
    double now;
    int64_t generated;
    char *at;
    if (!tauscope_on(trace) || !request->number || !tauscope_lock_(trace)) return;
    now = trace->clock();
    generated = request->generated_tokens;
    if (generated < 0 && request->tokens) generated = request->tokens;
    at = tauscope_put_start_(trace, tauscope_room_(trace, now), "end", now);
    at = tauscope_put_int_(at, "request", request->number - 1);
    at = tauscope_put_int_(at, "generated_tokens", generated);
    at = tauscope_put_fixed_(at, "prefill_ms", request->prefill_ms, 3);
    at = tauscope_put_fixed_(at, "decode_ms", request->decode_ms, 3);
    at = tauscope_put_text_(at, "finish", request->finish);
    at = tauscope_put_text_(at, "error", request->error);
    if (request->tokens) {
        int i;
        at = TAUSCOPE_PUT_(at, ",\"output_hash\":\"fnv1a64:");
        for (i = 60; i >= 0; i -= 4) *at++ = "0123456789abcdef"[request->hash >> i & 15];
        *at++ = '"';
    }
    request->number = 0;
    tauscope_done_(trace, at, now, 1);
}

/* Writes what is left, closes the file and leaves the trace off. No other call may be under way. */
static inline void tauscope_close(tauscope_trace *trace) {
    struct stat file;
    if (!trace->buffer) return;
    if (tauscope_lock_(trace)) {
        tauscope_write_(trace);
        pthread_mutex_unlock(&trace->lock);
    }
    if (fstat(trace->fd, &file) == 0 && file.st_dev == trace->device &&
        file.st_ino == trace->inode)
        close(trace->fd);
    free(trace->buffer);
    pthread_mutex_destroy(&trace->lock);
    memset(trace, 0, sizeof *trace);
}

#endif /* TAUSCOPE_TRACE_H */
