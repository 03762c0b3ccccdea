/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who looks at the pages over TCP, and may do something there.
 */
#ifndef TWHEELD_LOGIN_H
#define TWHEELD_LOGIN_H

#include "web/http.h"

void login_start(void);
bool login_check(struct ask *ask, const char *tube);
bool login_is_form(struct ask *ask);
void login_page(struct ask *ask);
bool login_home(struct ask *ask);
void login_enter(struct ask *ask);
void login_leave(struct ask *ask);

#endif
