/* SPDX-License-Identifier: Apache-2.0 */
/* One layer of an image: a tar archive, perhaps compressed, laid onto a folder.
 *
 *     layer FOLDER whole      an archive that is a whole image: files, folders, symlinks, hard links
 *     layer FOLDER hide       only the marks by which a layer hides what lies below it (".wh.NAME", ".wh..wh..opq") are obeyed
 *     layer FOLDER lay        everything but these marks
 *     layer FOLDER cargo      an export of a box (net/cargo.h), of which nothing is left out and nothing given way to: what is no
 *                             export is refused. What was deleted and what hides is written down in FOLDER/marks
 *
 * A mark hides what lower layers brought and never what its own brings, wherever it stands in the archive; so a layer is read twice,
 * first with hide, then with lay, and nothing has to be remembered of it.
 *
 * How it works: the archive comes from a stranger. This runs in a box whose only lasting place is the folder. Paths are walked step by
 * step from the folder's descriptor and no symlink is ever followed: an entry whose path leads through one is refused. Devices, FIFOs
 * and set-bits are left out and counted; what was left out is told in the lines of image/left.h. gzip, xz and zstd are known by their
 * first bytes, and undone by those programs, in the same box. */
#pragma once

#include "wire/message.h"

int layer_run(const struct msg_exec *m);
