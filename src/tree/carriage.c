/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what is carried of a layer. */
#include "tree/carriage.h"

bool carriage_step(struct carriage *c, const struct descent *d, struct descent_step *s)
{
    struct leaf *l = &s->leaf;
    if (l->kind == LEAF_FILE && l->marked_deleted && descent_folder(d)->has_whiteouts)
        l->kind = LEAF_WHITEOUT;
    l->marked_deleted = l->has_whiteouts = false;
    l->opaque = l->opaque && !c->lowest;
    if (l->kind == LEAF_FOLDER)
        l->st.st_mode &= ~(mode_t)S_ISGID;
    else
        l->st.st_mode &= ~(mode_t)S_ISVTX;
    if (l->kind == LEAF_FIFO || l->kind == LEAF_SOCKET) {
        c->left++;
        return false;
    }
    return l->kind != LEAF_WHITEOUT || !c->lowest;
}
