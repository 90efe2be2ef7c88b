/* Options are `--name value` pairs; if an option is missing or not a number, the program exits and prints its name. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load.h"

void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("load: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

const char *option_text(const Options *options, const char *name, const char *fallback) {
    for (int i = 0; i + 1 < options->count; i += 2) {
        if (strcmp(options->words[i], name) == 0) return options->words[i + 1];
    }
    return fallback;
}

const char *option_required(const Options *options, const char *name) {
    const char *text = option_text(options, name, NULL);
    if (text == NULL) fail("%s is required", name);
    return text;
}

int64_t option_number(const Options *options, const char *name, int64_t fallback) {
    const char *text = option_text(options, name, NULL);
    if (text == NULL) return fallback;
    char *end;
    long long number = strtoll(text, &end, 10);
    if (*end != '\0' || end == text || number < 1) fail("%s wants a number of at least 1, not '%s'", name, text);
    return number;
}
