/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Wheels as JSON.
 */
#ifndef LIST_H
#define LIST_H

#include <jansson.h>

#include "wheels.h"

json_t *wheel_json(const struct wheel *wheel);
json_t *wheel_json_holders(const struct wheels *wheels, size_t i);

#endif /* LIST_H */
