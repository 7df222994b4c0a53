# SPDX-License-Identifier: Apache-2.0
"""What files there should be: plain trees, and a project with a box's own changes over it."""
import os
import re

FILE, FOLDER, LINK, GONE = "f", "d", "l", "w"  # GONE: the box has deleted what lies below
TOKEN = re.compile(rb"[ub]\d+_\d+\.")  # every line somebody writes has one that is nowhere else; u: by the user, b: in a box


class Node:
    """A file, folder or link. Names that are hard links of each other have one between them."""

    __slots__ = ("kind", "mode", "data", "opaque", "names")

    def __init__(self, kind, mode=0o644, data=b"", opaque=False):
        self.kind, self.mode, self.data, self.opaque, self.names = kind, mode if kind != LINK else 0o777, data, opaque, 1

    def copy(self):
        return Node(self.kind, self.mode, self.data, self.opaque)

    def same(self, other, modes=True):
        return other is not None and self.kind == other.kind and self.data == other.data and (not modes or self.kind == LINK or self.mode == other.mode)

    def tokens(self):
        return set(TOKEN.findall(self.data))

    def __repr__(self):
        data = self.data.replace(b"\0" * 64, b"").strip(b"\0")
        return f"{self.kind} {self.mode:o} {len(self.data)} bytes {data[:200]!r}{'…' if len(data) > 200 else ''}"


def above(path):
    """Folders above it, the highest first."""
    parts = path.split(b"/")
    return [b"/".join(parts[:i]) for i in range(1, len(parts))]


def is_below(path, folder):
    return path.startswith(folder + b"/")


class Tree:
    """A tree with nothing below it."""

    def __init__(self, nodes=None):
        self.nodes = nodes if nodes is not None else {}

    def view(self):
        return self.nodes

    def put(self, path, node):
        self.nodes[path] = node

    def drop(self, path):
        for p in [p for p in self.nodes if p == path or is_below(p, path)]:
            self.nodes.pop(p).names -= 1

    def copy(self):
        """As it lies in a closed layer: there names are no longer one file."""
        return Tree({p: n.copy() for p, n in self.nodes.items()})

    def dissolve(self):
        self.nodes = {p: n.copy() for p, n in self.nodes.items()}


class Review:
    """A project with the changes of one box over it."""

    def __init__(self, project, upper=None, ghosts=()):
        self.project, self.upper = project, upper if upper is not None else {}
        self.ghosts = set(ghosts)  # what the box made and removed again: whether that hides what the project gets there later is open

    def hidden(self, path):
        """Whether the box's own changes above the path hide what the project has there."""
        for folder in above(path):
            u = self.upper.get(folder)
            if u and (u.kind != FOLDER or u.opaque):
                return True
        return False

    def view(self):
        found = {p: n for p, n in self.project.tree.nodes.items() if p not in self.upper and not self.hidden(p)}
        found.update({p: n for p, n in self.upper.items() if n.kind != GONE})
        return found

    def lower(self, path):
        return None if self.hidden(path) else self.project.tree.nodes.get(path)

    def copy_up(self, path):
        for folder in above(path):
            if folder not in self.upper:
                lower = self.project.tree.nodes[folder]
                self.upper[folder] = Node(FOLDER, lower.mode)

    def put(self, path, node):
        self.copy_up(path)
        if node.kind == FOLDER and (path in self.upper or self.lower(path)):
            node.opaque = True
        self.upper[path] = node

    def drop(self, path):
        for p in [p for p in self.upper if p == path or is_below(p, path)]:
            self.upper.pop(p).names -= 1
            self.ghosts.add(p)
        if self.lower(path):
            self.copy_up(path)
            self.upper[path] = Node(GONE)

    def copy(self):
        return Review(self.project, {p: n.copy() for p, n in self.upper.items()}, self.ghosts)

    def dissolve(self):
        self.upper = {p: n.copy() for p, n in self.upper.items()}


def read_tree(root, skip=()):
    """The same of what lies on the host."""
    root, found = os.fsencode(root), {}

    def walk(folder, prefix):
        with os.scandir(folder) as entries:
            for e in entries:
                path = prefix + e.name
                if path in skip:
                    continue
                st = e.stat(follow_symlinks=False)
                if e.is_symlink():
                    found[path] = Node(LINK, 0o777, os.readlink(e.path))
                elif e.is_dir():
                    found[path] = Node(FOLDER, st.st_mode & 0o7777)
                    walk(e.path, path + b"/")
                else:
                    with open(e.path, "rb") as f:
                        found[path] = Node(FILE, st.st_mode & 0o7777, f.read())

    walk(root, b"")
    return found


# --- in the box ---

# One process does what a step asks and then tells all the files there are: much cheaper than one after the other.
PERL = r"""
use strict; use Fcntl; no warnings; umask 022; binmode STDOUT; my @todo = @ARGV; my $bad = '';
sub fail { $bad .= "$_[0]: $!\n" }
sub spill { my ($path, $how, $data) = @_; sysopen(my $f, $path, $how, 0644) or return fail("open $path"); syswrite($f, $data) == length $data or fail("write $path"); close $f }
sub tell_tree { my ($top, $skip) = @_; my @left = ('');
  while (defined(my $dir = pop @left)) { opendir(my $d, $dir eq '' ? $top : "$top/$dir") or do { fail("read $top/$dir"); next };
    for my $name (readdir $d) { next if $name eq '.' or $name eq '..'; my $rel = $dir eq '' ? $name : "$dir/$name"; next if $skip && $rel =~ /^(\.git|\.pale)$/;
      my $path = "$top/$rel"; my @st = lstat $path or do { print pack('N/a* a N N/a*', $rel, '?', 0, "$!"); next };
      if (-l _) { print pack('N/a* a N N/a*', $rel, 'l', 0777, readlink $path) }
      elsif (-d _) { push @left, $rel; print pack('N/a* a N N/a*', $rel, 'd', $st[2] & 07777, '') }
      elsif (-f _) { local $/; my $data = ''; if (open(my $f, '<', $path)) { binmode $f; $data = <$f> } else { fail("read $path") } print pack('N/a* a N N/a*', $rel, 'f', $st[2] & 07777, $data // '') }
      else { print pack('N/a* a N N/a*', $rel, '?', $st[2], '') } } }
  print pack('N', 0xffffffff) }
my %do = (
  create => sub { unlink $_[0] if -l $_[0]; spill($_[0], O_WRONLY|O_CREAT|O_TRUNC, $_[1]) }, append => sub { spill($_[0], O_WRONLY|O_APPEND, $_[1]) },
  replace => sub { spill("$_[0].new~", O_WRONLY|O_CREAT|O_EXCL, $_[1]); rename "$_[0].new~", $_[0] or fail("replace $_[0]") },
  cut => sub { truncate $_[0], $_[1] or fail("cut $_[0]") }, hole => sub { sysopen(my $f, $_[0], O_WRONLY|O_CREAT|O_TRUNC, 0644) or return fail("open $_[0]"); sysseek $f, $_[1], 0; syswrite $f, $_[2]; close $f },
  del => sub { system('rm', '-rf', '--', $_[0]) if -d $_[0] && !-l $_[0]; (unlink $_[0] or -e $_[0] or -l $_[0]) && (-l $_[0] || -e $_[0]) && fail("del $_[0]") }, mkdir => sub { mkdir $_[0], 0755 or fail("mkdir $_[0]") },
  rmdir => sub { rmdir $_[0] or fail("rmdir $_[0]") }, mv => sub { rename $_[0], $_[1] or system('mv', '-T', '--', $_[0], $_[1]) == 0 or fail("mv $_[0]") },
  symlink => sub { symlink $_[1], $_[0] or fail("symlink $_[0]") }, link => sub { link $_[0], $_[1] or fail("link $_[0] $_[1]") }, chmod => sub { chmod $_[1], $_[0] or fail("chmod $_[0]") });
while (@todo) { my $what = shift @todo; last if $what eq 'look'; my $n = shift @todo; my @words = map { s/%([0-9a-f]{2})/chr hex $1/ger } splice(@todo, 0, $n); $do{$what}->(@words) }
while (@todo) { my $top = shift @todo; tell_tree($top, shift @todo) }
print $bad;
"""


def escape(data):
    """Words of a command cannot hold a NUL, and ours no newline either."""
    return re.sub(rb"[^A-Za-z0-9_./-]", lambda m: b"%%%02x" % m[0][0], data)


def words(ops, look):
    """What the process in the box is told: ops of (what, word …), then the folders to be told."""
    said = ["perl", "-e", PERL]
    for what, *args in ops:
        said += [what, str(len(args)), *(escape(a if isinstance(a, bytes) else str(a).encode()) for a in args)]
    said.append("look")
    for folder, skip in look:
        said += [folder, "1" if skip else ""]
    return said


def parse(told, count):
    """([{path: Node}] of so many folders, what went wrong)."""
    trees, at = [], 0
    for _ in range(count):
        tree = {}
        while True:
            n = int.from_bytes(told[at:at + 4], "big")
            at += 4
            if n == 0xFFFFFFFF:
                break
            if at + n > len(told) or n == 0:
                raise ValueError(f"the box told half a tree: {told[-200:]!r}")
            path = told[at:at + n]
            at += n
            kind, mode, size = chr(told[at]), int.from_bytes(told[at + 1:at + 5], "big"), int.from_bytes(told[at + 5:at + 9], "big")
            tree[path] = Node(kind, mode, told[at + 9:at + 9 + size])
            at += 9 + size
        trees.append(tree)
    return trees, told[at:].decode("utf-8", "replace")
