#!/usr/bin/env bash
# Builds Juman 7.0 from Debian's source package into PREFIX (default ~/.local); half a minute, no root.
# Debian 12's binary package is no use: since GCC 10 the preprocessor writes letters beyond ASCII as \U escapes,
# so its table of connections came out empty, and it finds no words (`echo 猫 | juman` says EOS only).
set -euo pipefail
prefix=$(realpath -m "${1:-$HOME/.local}")
for program in apt-get dpkg-source gcc make; do
  command -v $program > /dev/null || { echo "install-juman: no $program (Debian: apt-get install dpkg-dev gcc make)"; exit 1; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{parts,lists/partial,cache/archives/partial}
for list in /etc/apt/sources.list /etc/apt/sources.list.d/*; do # the same places, for sources
  case $list in
    *.list) sed -n 's/^deb /deb-src /p' "$list" > "$work/parts/${list##*/}" ;;
    *.sources) sed 's/^Types:.*/Types: deb-src/' "$list" > "$work/parts/${list##*/}" ;;
  esac 2> /dev/null || true
done
apt=(apt-get -qq -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$work/parts"
  -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root)
cd "$work"
"${apt[@]}" update || true # other places may have no sources
"${apt[@]}" source juman=7.0-\* > /dev/null 2>&1 || "${apt[@]}" source juman > /dev/null

cd juman-7.0*/
CFLAGS="-O2 -fcommon -w" CPP="gcc -E -fno-extended-identifiers" ./configure --prefix="$prefix" > "$work/log" 2>&1
make >> "$work/log" 2>&1 || { tail -5 "$work/log"; exit 1; }
make install >> "$work/log" 2>&1
echo 猫が寝る | "$prefix/bin/juman" -b | grep -q '^猫 ' || { echo "install-juman: it does not work"; exit 1; }
echo "installed $prefix/bin/juman"
