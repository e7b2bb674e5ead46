// Command dist makes what a release consists of, in one folder: an archive for
// each system with the program, its man pages and shell completions; a Debian
// package for each Linux one; install.sh; and checksums.txt over all of it.
//
// The same source, Go release, version, commit and date give the same bytes,
// whatever the folder, the machine and the time: nothing but these goes in.
// nfpm, which writes the Debian package, is run by the go command at a fixed
// version, so that what it is built of stays out of this module. Start reading
// at run.
package main
