/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requests to twheeld.
 */
#ifndef ASK_H
#define ASK_H

#include "tool.h"

#define ASK_SOCKET "/run/twheeld/admin"
#define OPTION_SOCKET { "socket", 's', "PATH", 0, "The server's socket (" ASK_SOCKET	\
	", or what $TWHEELD_ADMIN says)", 0 }

/* As -s says; NULL: it does not */
extern const char *ask_socket;

int ask(const char *method, const char *path, const char *type, const char *body, size_t length,
	json_t **answer);
int ask_json(const char *method, const char *path, json_t *body, json_t **answer);
char *ask_path(const char *format, const char *name);

/* Members of an answer: a text, or "-"; a number, or 0 */
const char *member(const json_t *object, const char *name);
long long number(const json_t *object, const char *name);
void print_text(const char *text, const char *before);
void print_value(const char *name, const json_t *value);

#endif /* ASK_H */
