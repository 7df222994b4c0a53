# SPDX-License-Identifier: Apache-2.0
"""Cases about layers, review and apply, snapshots and forks, and images."""
import needs
import scenes_files as scenes
from battery import NESTED, PLAIN, ROOT, USER, Case, switches
from cases_host import slug
from cases_kernel import layers

# The overlay is gone, and what it lay on can be written: the one without the other shows nothing.
RAW = switches("layers,readonly")
REVIEWED = ("--project", "review", "--project-path", "{dir}/p")
REVIEW = [
    *layers(Case("review-write", "C14", 30, ("write", "{dir}/p/evil"), RAW, flags=REVIEWED, judge="apart", peer=False), "layers", "readonly"),
    *layers(Case("review-overwrite", "C14", 30, ("write", "{dir}/p/f"), RAW, flags=REVIEWED, judge="apart", peer=False), "layers", "readonly"),
    *layers(Case("review-hard-link", "C7", 30, ("write", "{dir}/p/linked"), RAW, flags=REVIEWED, judge="apart", peer=False), "layers", "readonly"),
    Case("review-whiteout", "C9", 30, ("whiteout", "{dir}/p/w"), RAW | switches("seccomp"), off=switches("seccomp"), flags=REVIEWED, judge="apart", peer=False),
    # Root's boxes have ids that own nothing outside, and the kernel links no file of somebody else's.
    Case("hard-link-out-of-the-tree", "C7", 2, ("hard-link", "{dir}/r/f", "{dir}/w/f"), switches("root,landlock,readonly"), judge="linked", who=(USER, PLAIN, NESTED),
         flags=("--read", "{dir}/r", "--write", "{dir}/w"), peer=False),
]

HAZARD = switches("hazard")
WRITE = "echo x > '{name}'"
OBEYED = {
    "C1": (".git/config", "sub/deep/.git/config", ".gitattributes"), "C2": (".git/hooks/pre-commit", "sub/.GIT/hooks/post-checkout"), "C4": (".gitmodules", "sub/.git", ".lfsconfig"),
    "C5": (".claude/settings.json", ".mcp.json", "AGENTS.md", ".vscode/tasks.json", ".envrc", "sub/deep/.envrc", ".github/workflows/x.yml", "package.json", "Makefile",
           "conftest.py", ".pre-commit-config.yaml", ".cargo/config.toml"),
}
LANDING = [
    *[Case(f"apply-{slug(n)}", t, 31, (), HAZARD, scene=scenes.held_back(n, WRITE), peer=False) for t, names in OBEYED.items() for n in names],
    *[Case(f"apply-{n}", t, 31, (), HAZARD, scene=scenes.held_back(name, make), peer=False) for n, t, name, make in (
        ("bare-repository", "C3", "store/config", "cd store && mkdir objects refs && echo x > HEAD && echo x > config && cd .."),
        ("link-absolute", "C6", "link", "ln -s /etc/passwd '{name}'"), ("link-up", "C6", "d/link", "ln -s ../../x '{name}'"),
        ("link-down-and-up", "C6", "link", "mkdir d && ln -s d/../../x '{name}'"), ("link-to-hooks", "C6", "link", "ln -s .git/hooks '{name}'"),
        ("new-executable", "C5", "tool", "printf '#!/bin/sh\\n' > '{name}' && chmod 755 '{name}'"),
        ("trailing-dot", "C11", ".envrc.", WRITE), ("unseen-mark", "C11", ".env\u200brc", WRITE))],
    *[Case(f"apply-without-{n}", "C12", 31, (), HAZARD, scene=scenes.not_taken(name, take), peer=False) for n, name, take in (
        ("file", ".husky/pre-commit", "rm .husky/pre-commit"), ("folder", ".git/hooks/pre-commit", "rm -r .git"), ("opaque-folder", ".git/config", "rm -r .git && mkdir .git"),
        ("link-for-folder", ".vscode/tasks.json", "rm -r .vscode && ln -s src .vscode"))],
    Case("apply-setuid", "C8", 31, (), HAZARD | switches("seccomp"), off=switches("seccomp"), peer=False,
         scene=scenes.held_back("s", "echo x > '{name}' && chmod 4644 '{name}'")),
    # Root gives what it landed to its owner, and the kernel takes the bits then.
    Case("apply-set-id-bits", "C8", 31, (), switches("seccomp,bits"), off=switches("seccomp"), scene=scenes.landing_of_bits, peer=False, who=(USER, PLAIN)),
    Case("apply-hard-link", "C7", 31, (), switches("exchange"), scene=scenes.landing_on_hard_link, peer=False),
    Case("apply-through-link", "C6", 31, (), switches("beneath,tree-lock"), off=switches("tree-lock"), scene=scenes.landing_through_link, peer=False),
    *[Case(f"escapes-{v}", "C11", 19, (), switches("quote"), scene=scenes.printed_changes(v), peer=False) for v in ("diff", "stat", "names", "diff-json", "apply", "apply-json")],
]

LAYERS = [
    *[Case(f"layer-mark-{n}", "C12", 32, (), switches("layers"), scene=scenes.steered(n, v), peer=False, needs=(needs.user_attributes,))
      for n, v in (("redirect", "/etc"), ("metacopy", "x"), ("opaque", "y"), ("whiteout", "y"), ("origin", "x"))],
    *[c for how in scenes.CHANGES for c in layers(Case(f"fork-{how}", "C15", 32, (), RAW, scene=scenes.fork_changes(how, "sibling"), peer=False), "layers", "readonly")],
    *[Case(f"fork-write-seen-by-{who}", "C15", 32, (), RAW, scene=scenes.fork_changes("write", who), peer=False) for who in ("parent", "next")],
    *[Case(f"snapshot-{how}", "C15", 32, (), RAW, scene=scenes.kept_snapshot(how), peer=False) for how in scenes.CHANGES],
    *[Case(f"poison-{how}", "C15", 33, (), switches("poison"), scene=scenes.poisoned(how), peer=False, needs=(needs.user_attributes,), who=(ROOT,) if how in ("device", "capability") else (ROOT, USER, PLAIN, NESTED))
      for how in ("redirect", "metacopy", "unknown-mark", "setuid", "setgid", "device", "capability")],
]

MEMORY = ("--scratch", "memory", "--disk", "16M")
SHARED = ("--project", "review", "--project-path", "{dir}")
BOUNDED = [
    *[Case(f"fifo-{v}", "C10", 35, (), switches("plain-open"), scene=scenes.fifo_in_review(v), peer=False) for v in ("diff", "apply")],
    Case("huge-file-diff", "C13", 35, (), switches("holes"), scene=scenes.huge_in_diff, peer=False, needs=(needs.huge_files,)),
    Case("huge-file-snapshot", "C13", 35, (), switches("holes"), scene=scenes.huge_in_snapshot, peer=False, needs=(needs.huge_files,)),
    Case("files-in-memory", "C13", 16, ("many-files", "/tmp", "3000"), switches("limits"), flags=MEMORY, judge="ended", peer=False),
    Case("review-disk-in-memory", "C13", 16, ("fill", "{dir}/x", "64"), switches("limits"), flags=(*MEMORY, *SHARED), judge="ended", peer=False),
    Case("review-files-in-memory", "C13", 16, ("many-files", "{dir}", "3000"), switches("limits"), flags=(*MEMORY, *SHARED), judge="ended", peer=False),
]

ON_IMAGE = ("--image", "{image}")
SECCOMP = switches("seccomp")
FOLLOWING = switches("nofollow,beneath")
UNMASKED = switches("proc-mask")  # what /proc is covered with is in a root that such a twin does not have
IMAGES = [
    *[Case(f"image-{n}", "C14", 34, (), RAW, scene=scenes.image_written(path), peer=False)
      for n, path in (("write", "/usr/bin/evil"), ("overwrite", "/canary"), ("etc", "/etc/ld.so.preload"), ("root", "/evil"))],
    Case("image-between-boxes", "C15", 34, (), RAW, scene=scenes.image_between_boxes, peer=False),
    *[Case(f"image-link-{n}", "A3", 34, (), FOLLOWING, scene=scenes.image_link(n), peer=False) for n in ("home", "etc", "root")],
    Case("image-host-file", "A2", 34, ("roads", "{secret}"), switches("root") | UNMASKED, off=UNMASKED, flags=ON_IMAGE, judge="image:host-file", peer=False),
    # The filter that plays root lies over the other one. In the twin it is there alone.
    *[Case(f"image-{n}", t, 34, ("door", n), SECCOMP, flags=ON_IMAGE, judge="image:word", peer=False, door=True)
      for n, t in (("keyctl", "D9"), ("io-uring-setup", "B3"), ("bpf-map-create", "B19"), ("mount-setattr", "B10"), ("open-tree", "B10"), ("setns", "B13"), ("userfaultfd", "B19"),
                   ("name-to-handle-at", "B18"))],
    Case("image-unshare-user", "B13", 34, ("unshare", str(0x10000000)), switches("seccomp,user-max"), flags=ON_IMAGE, judge="image:word", peer=False),
    *[Case(f"image-caps-{n}", "A12", 34, ("caps", k), switches("caps"), flags=ON_IMAGE, judge="image:word", peer=False)
      for n, k in (("permitted", "CapPrm"), ("effective", "CapEff"), ("bounding", "CapBnd"))],
    Case("image-setuid", "C8", 34, ("setid", "chmod", "04755", "s"), SECCOMP, judge="image:rights", peer=False,
         flags=(*ON_IMAGE, "--project", "live", "--project-path", "{dir}")),
    *[Case(f"image-{n}", t, 34, ("mount-flags", n), switches("mount-flags"), flags=ON_IMAGE, judge="image:word", peer=False) for n, t in (("nosuid", "C8"), ("nodev", "C9"))],
    Case("image-environment", "D14", 34, ("environment",), switches("env"), flags=ON_IMAGE, judge="image:environment", peer=False),
]

CASES = [*REVIEW, *LANDING, *LAYERS, *BOUNDED, *IMAGES]
