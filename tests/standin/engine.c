/* An engine that knows nothing of models: it replays a log of known truth.
 *
 *   engine [--log FILE] [--trace FILE] [--times N] [--rate LINES_PER_S]
 *          [--gate LINES FILE] [--output TEXT] [--echo] [--size] [--switches]
 *          [--signals FILE] [--until-signal] [--stats FILE] [--exit CODE]
 *
 * --log      lines for standard error, one write each, as an unbuffered stderr does
 * --trace    lines for the file named by $TAUSCOPE_TRACE, one after each line of the log
 * --gate     after so many lines, wait until the file is there
 * --output   text for standard output, after the lines
 * --echo     copy standard input to standard output first
 * --size     say the terminal's size on standard output
 * --switches say the logging switches on standard output
 * --signals  append the number of each signal that comes to a file; SIGTERM ends a wait
 * --stats    write "lines, nanoseconds in write(2), longest of them, CPU nanoseconds" to a file
 */
#define _DEFAULT_SOURCE
#define _DARWIN_C_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    char *data;
    size_t size, at;
} Text;

static volatile sig_atomic_t ended;
static int signals_fd = -1;

static void caught(int number) {
    char line[8];
    size_t size = 0;
    if (number >= 10) line[size++] = (char)('0' + number / 10);
    line[size++] = (char)('0' + number % 10);
    line[size++] = '\n';
    if (write(signals_fd, line, size) < 0) return;
    if (number == SIGTERM) ended = 1;
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* What this thread itself has used: waiting and being put aside don't count. */
static int64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void sleep_ns(int64_t ns) {
    struct timespec t;
    t.tv_sec = (time_t)(ns / 1000000000);
    t.tv_nsec = (long)(ns % 1000000000);
    nanosleep(&t, NULL);
}

static Text load(const char *path) {
    Text text = {NULL, 0, 0};
    struct stat info;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &info) < 0) {
        perror(path);
        exit(2);
    }
    text.data = malloc((size_t)info.st_size + 1);
    while (text.data && text.size < (size_t)info.st_size) {
        ssize_t got = read(fd, text.data + text.size, (size_t)info.st_size - text.size);
        if (got <= 0) break;
        text.size += (size_t)got;
    }
    close(fd);
    return text;
}

/* Size of the next line, its end included; 0 at the end of the text. */
static size_t next_line(const Text *text) {
    size_t left = text->size - text->at;
    char *end = left ? memchr(text->data + text->at, '\n', left) : NULL;
    return end ? (size_t)(end - (text->data + text->at)) + 1 : left;
}

static void put_line(Text *text, int fd) {
    size_t size = next_line(text);
    /* A full disk is no reason to stop: stderr's errors are looked at by no one. */
    if (fd >= 0 && size && write(fd, text->data + text->at, size) < 0) errno = 0;
    text->at += size;
}

int main(int argc, char **argv) {
    Text log = {NULL, 0, 0}, trace = {NULL, 0, 0};
    const char *gate = NULL, *output = NULL, *stats = NULL, *name;
    long times = 1, gate_lines = 0, code = 0, lines = 0, k;
    int64_t in_write = 0, in_cpu = 0, longest = 0, start;
    double rate = 0;
    int wait_for_signal = 0, trace_fd = -1, i;

    for (i = 1; i < argc; i++) {
        const char *word = argv[i];
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(word, "--log")) log = load(value), i++;
        else if (!strcmp(word, "--trace")) trace = load(value), i++;
        else if (!strcmp(word, "--times")) times = atol(value), i++;
        else if (!strcmp(word, "--rate")) rate = atof(value), i++;
        else if (!strcmp(word, "--output")) output = value, i++;
        else if (!strcmp(word, "--stats")) stats = value, i++;
        else if (!strcmp(word, "--exit")) code = atol(value), i++;
        else if (!strcmp(word, "--until-signal")) wait_for_signal = 1;
        else if (!strcmp(word, "--gate") && i + 2 < argc) {
            gate_lines = atol(value);
            gate = argv[i + 2];
            i += 2;
        } else if (!strcmp(word, "--echo")) {
            char part[4096];
            ssize_t got;
            while ((got = read(0, part, sizeof part)) > 0)
                if (write(1, part, (size_t)got) < 0) break;
        } else if (!strcmp(word, "--size")) {
            struct winsize size;
            memset(&size, 0, sizeof size);
            ioctl(0, TIOCGWINSZ, &size);
            printf("%d x %d, stdout %s a terminal\n", size.ws_col, size.ws_row,
                   isatty(1) ? "is" : "is not");
            fflush(stdout);
        } else if (!strcmp(word, "--switches")) {
            static const char *const names[] = {"DS4_MTP_TIMING", "DS4_MTP_CONF_LOG",
                                                "DS4_MTP_SPEC_LOG", "DS4_DSPARK_STATS",
                                                "TAUSCOPE_TRACE"};
            for (k = 0; k < 5; k++) {
                const char *set = getenv(names[k]);
                printf("%s=%s\n", names[k], set ? set : "(unset)");
            }
            fflush(stdout);
        } else if (!strcmp(word, "--signals")) {
            static const int numbers[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
            signals_fd = open(value, O_WRONLY | O_CREAT | O_APPEND, 0666);
            for (k = 0; k < 6; k++) {
                struct sigaction action;
                memset(&action, 0, sizeof action);
                action.sa_handler = caught;
                sigaction(numbers[k], &action, NULL);
            }
            i++;
        } else if (!strcmp(word, "-p")) {
            i++; /* a prompt, as the real one takes it */
        } else {
            fprintf(stderr, "engine: what is %s?\n", word);
            return 2;
        }
    }
    name = getenv("TAUSCOPE_TRACE");
    if (trace.size && name) trace_fd = open(name, O_WRONLY | O_APPEND | O_CREAT, 0666);

    start = now_ns();
    for (k = 0; k < times && !ended; k++) {
        log.at = 0;
        trace.at = 0;
        while (!ended && (next_line(&log) || next_line(&trace))) {
            if (stats) {
                size_t size = next_line(&log);
                int64_t cpu = cpu_ns(), before = now_ns(), took;
                if (size && write(2, log.data + log.at, size) < 0) errno = 0;
                took = now_ns() - before;
                in_write += took;
                in_cpu += cpu_ns() - cpu;
                if (took > longest) longest = took;
                log.at += size;
            } else {
                put_line(&log, 2);
            }
            put_line(&trace, trace_fd);
            lines++;
            if (gate && lines == gate_lines)
                while (access(gate, F_OK) != 0 && !ended) sleep_ns(2000000);
            if (rate > 0) {
                int64_t ahead = start + (int64_t)((double)lines / rate * 1e9) - now_ns();
                if (ahead > 500000) sleep_ns(ahead);
            }
        }
    }
    if (output) {
        printf("%s", output);
        fflush(stdout);
    }
    while (wait_for_signal && !ended) sleep_ns(2000000);
    if (stats) {
        FILE *file = fopen(stats, "w");
        if (file) {
            fprintf(file, "%ld %lld %lld %lld\n", lines, (long long)in_write,
                    (long long)longest, (long long)in_cpu);
            fclose(file);
        }
    }
    return (int)code;
}
