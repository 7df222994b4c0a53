/* SPDX-License-Identifier: Apache-2.0 */
/* YAML or JSON text to a tree. */
#pragma once

#include "reader/node.h"

/* Lets the libraries take what they open files for (random numbers for hash tables). Call it before locking up. */
void load_prepare(void);

/* Builds the tree; *ret is NULL for an empty document. Errors in the text are notes in c (the tree then has what could still
 * be read, or is NULL); a negative return is trouble of our own. text is changed where JSON and YAML spell things
 * differently. The caller frees *ret. */
int load_tree(char *text, size_t len, bool is_json, struct node **ret, struct complaints *c, struct pale_err *e) MUST_CHECK;
