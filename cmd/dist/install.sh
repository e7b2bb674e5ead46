#!/bin/sh
# Installs agentop on Linux or macOS: fetches the archive for this machine,
# compares it with checksums.txt and puts program, man pages and completions
# below a prefix. Run again, it upgrades; a running proxy goes over to the new
# program by itself and cuts no stream.
#
#   sh install.sh [--from URL-OR-FOLDER] [--prefix FOLDER]
#
# Without --from: where this file came from. Without --prefix: /usr/local if
# that can be written, else ~/.local.
set -eu

# Written in when a release is made.
base=

say() { printf 'install.sh: %s\n' "$*"; }
fail() { printf 'install.sh: %s\n' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

from=${AGENTOP_FROM:-} prefix=${AGENTOP_PREFIX:-}
while [ $# -gt 0 ]; do
  case $1 in
    --from) [ $# -gt 1 ] || fail "--from needs a URL or a folder"; from=$2; shift 2 ;;
    --prefix) [ $# -gt 1 ] || fail "--prefix needs a folder"; prefix=$2; shift 2 ;;
    -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) fail "unknown argument $1; --help tells which there are" ;;
  esac
done
if [ -z "$from" ]; then
  here=$(dirname -- "$0")
  if [ -f "$here/checksums.txt" ]; then from=$here; else from=$base; fi
fi
[ -n "$from" ] || fail "from where? Say --from with the URL or folder that has checksums.txt"

case $(uname -s) in
  Linux) os=linux ;;
  Darwin) os=darwin ;;
  *) fail "there is no agentop for $(uname -s); it is for Linux and macOS" ;;
esac
case $(uname -m) in
  x86_64 | amd64) arch=amd64 ;;
  aarch64 | arm64) arch=arm64 ;;
  *) fail "there is no agentop for $(uname -m); it is for x86_64 and arm64" ;;
esac
if have sha256sum; then sum() { sha256sum "$1"; }
elif have shasum; then sum() { shasum -a 256 "$1"; }
else fail "neither sha256sum nor shasum is there to check the download with"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# fetch NAME: from $from into $work.
fetch() {
  case $from in
    http://* | https://*)
      if have curl; then curl -fsSL --retry 2 -o "$work/$1" "${from%/}/$1"
      elif have wget; then wget -q -O "$work/$1" "${from%/}/$1"
      else fail "neither curl nor wget is there to fetch with"
      fi || fail "cannot fetch ${from%/}/$1" ;;
    *) cp "$from/$1" "$work/$1" || fail "cannot read $from/$1" ;;
  esac
}

name=agentop_${os}_$arch
fetch checksums.txt
want=$(sed -n "s/^\([0-9a-f]\{64\}\)  $name\.tar\.gz\$/\1/p" "$work/checksums.txt")
[ -n "$want" ] || fail "checksums.txt of $from does not name $name.tar.gz"
fetch "$name.tar.gz"
got=$(sum "$work/$name.tar.gz")
got=${got%% *}
[ "$got" = "$want" ] || fail "$name.tar.gz is not what checksums.txt says: want $want, got $got. Nothing was installed"

tar -xzf "$work/$name.tar.gz" -C "$work"
"$work/$name/agentop" version >"$work/version" || fail "the program does not run on this machine. Nothing was installed"

if [ -z "$prefix" ]; then
  prefix=$HOME/.local
  if mkdir -p /usr/local/bin 2>/dev/null && [ -w /usr/local/bin ]; then prefix=/usr/local; fi
fi
# put FILE FOLDER NAME MODE: by a rename, so that nobody sees half of it.
put() {
  mkdir -p "$prefix/$2"
  cp "$1" "$prefix/$2/.$3.new"
  chmod "$4" "$prefix/$2/.$3.new"
  mv -f "$prefix/$2/.$3.new" "$prefix/$2/$3"
}
put "$work/$name/agentop" bin agentop 755
put "$work/$name/completions/agentop.bash" share/bash-completion/completions agentop 644
put "$work/$name/completions/_agentop" share/zsh/site-functions _agentop 644
put "$work/$name/completions/agentop.fish" share/fish/vendor_completions.d agentop.fish 644
for page in "$work/$name"/man/man1/*.1; do put "$page" share/man/man1 "$(basename "$page")" 644; done

say "installed $prefix/bin/agentop: $(cat "$work/version")"
case :$PATH: in
  *:"$prefix/bin":*) ;;
  *) say "$prefix/bin is not in your PATH: add it" ;;
esac
say "next: agentop setup"
