package importer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// This file reads tables out of a SQLite database: https://sqlite.org/fileformat2.html
// is the source of all numbers. It knows what cc-switch's database needs,
// ordinary tables in UTF-8, and the write-ahead log, where a running cc-switch
// keeps what it wrote last. A rollback journal is not looked at.

// database is a database's pages, those of the write-ahead log over the file's.
type database struct {
	file     []byte
	newer    map[uint32][]byte
	pageSize int
	usable   int // bytes of a page that hold content
	left     int // bytes that rows may still have: each stands in the files once
}

var errDatabase = errors.New("the database is damaged, or of a kind that agentop does not know")

// openDatabase takes a database file and its write-ahead log, which may be
// empty.
func openDatabase(file, wal []byte) (*database, error) {
	d := &database{file: file, newer: map[uint32][]byte{}, left: 2 * (len(file) + len(wal))} // two tables are read
	d.readWAL(wal)
	if d.pageSize == 0 && len(file) >= 18 {
		d.pageSize = pageSize(uint32(binary.BigEndian.Uint16(file[16:])))
	}
	header := d.page(1)
	if header == nil || !bytes.HasPrefix(header, []byte("SQLite format 3\x00")) || binary.BigEndian.Uint32(header[56:]) > 1 {
		return nil, errDatabase
	}
	d.usable = d.pageSize - int(header[20])
	if d.usable < 480 {
		return nil, errDatabase
	}
	return d, nil
}

// pageSize checks a page's size; 0 is none. 1 stands for 65,536 in a header.
func pageSize(n uint32) int {
	if n == 1 {
		n = 1 << 16
	}
	if n < 512 || n > 1<<16 || n&(n-1) != 0 {
		return 0
	}
	return int(n)
}

// page gives a page by its number, which counts from 1; nil if there is none.
func (d *database) page(n uint32) []byte {
	if p, ok := d.newer[n]; ok {
		return p
	}
	end := int64(n) * int64(d.pageSize)
	if n == 0 || d.pageSize == 0 || end > int64(len(d.file)) {
		return nil
	}
	return d.file[end-int64(d.pageSize) : end]
}

// The write-ahead log's header and that of each of its frames, in bytes.
const (
	walHeader   = 32
	frameHeader = 24
)

// readWAL takes the pages of every transaction that is whole. What follows
// them is of a transaction that was never finished, or of an older log.
func (d *database) readWAL(wal []byte) {
	if len(wal) < walHeader {
		return
	}
	magic := binary.BigEndian.Uint32(wal)
	size := pageSize(binary.BigEndian.Uint32(wal[8:]))
	if magic&^1 != 0x377f0682 || size == 0 {
		return
	}
	sum := walSum{order: binary.LittleEndian}
	if magic&1 != 0 {
		sum.order = binary.BigEndian
	}
	sum.add(wal[:24])
	if !sum.is(wal[24:]) {
		return
	}
	d.pageSize = size
	salt := wal[16:24]
	waiting := map[uint32][]byte{} // for the end of their transaction
	for rest := wal[walHeader:]; len(rest) >= frameHeader+size; rest = rest[frameHeader+size:] {
		frame, page := rest[:frameHeader], rest[frameHeader:frameHeader+size]
		sum.add(frame[:8])
		sum.add(page)
		if !bytes.Equal(frame[8:16], salt) || !sum.is(frame[16:]) {
			return
		}
		waiting[binary.BigEndian.Uint32(frame)] = page
		if binary.BigEndian.Uint32(frame[4:]) > 0 {
			for n, p := range waiting {
				d.newer[n] = p
			}
			clear(waiting)
		}
	}
}

// walSum is the write-ahead log's running checksum.
type walSum struct {
	order  binary.ByteOrder
	s0, s1 uint32
}

func (s *walSum) add(b []byte) {
	for ; len(b) >= 8; b = b[8:] {
		s.s0 += s.order.Uint32(b) + s.s1
		s.s1 += s.order.Uint32(b[4:]) + s.s0
	}
}

func (s *walSum) is(b []byte) bool {
	return binary.BigEndian.Uint32(b) == s.s0 && binary.BigEndian.Uint32(b[4:]) == s.s1
}

// table calls each with the values of every row of the table whose first page
// is root.
func (d *database) table(root uint32, each func([]value) error) error {
	return d.walk(root, map[uint32]bool{}, each)
}

// walk reads a page of a table and those below it. A page that was seen before
// is the mark of a damaged file.
func (d *database) walk(n uint32, seen map[uint32]bool, each func([]value) error) error {
	page := d.page(n)
	if page == nil || seen[n] {
		return errDatabase
	}
	seen[n] = true
	head := page
	if n == 1 {
		head = page[100:]
	}
	leaf := head[0] == 13
	first := 8
	if !leaf {
		first = 12
	}
	count := int(binary.BigEndian.Uint16(head[3:]))
	if head[0] != 13 && head[0] != 5 || first+2*count > len(head) {
		return errDatabase
	}
	for i := range count {
		at := int(binary.BigEndian.Uint16(head[first+2*i:]))
		if at+4 > d.usable {
			return errDatabase
		}
		var err error
		if leaf {
			err = d.cell(page[at:d.usable], each)
		} else {
			err = d.walk(binary.BigEndian.Uint32(page[at:]), seen, each)
		}
		if err != nil {
			return err
		}
	}
	if leaf {
		return nil
	}
	return d.walk(binary.BigEndian.Uint32(head[8:]), seen, each)
}

// cell reads one row, with its overflow pages.
func (d *database) cell(b []byte, each func([]value) error) error {
	size, b, ok := varint(b)
	if !ok || size > uint64(d.left) {
		return errDatabase
	}
	d.left -= int(size)
	_, b, ok = varint(b) // the row's number
	if !ok {
		return errDatabase
	}
	total, local := int(size), d.local(int(size))
	if local > len(b) {
		return errDatabase
	}
	record := b[:local:local]
	if local < total {
		if len(b) < local+4 {
			return errDatabase
		}
		for next := binary.BigEndian.Uint32(b[local:]); len(record) < total; {
			page := d.page(next)
			if page == nil {
				return errDatabase
			}
			next = binary.BigEndian.Uint32(page)
			record = append(record, page[4:min(d.usable, 4+total-len(record))]...)
		}
	}
	values, err := decodeRecord(record)
	if err != nil {
		return err
	}
	return each(values)
}

// local is how many bytes of a row of n bytes stand in its own page.
func (d *database) local(n int) int {
	most := d.usable - 35
	if n <= most {
		return n
	}
	least := (d.usable-12)*32/255 - 23
	if k := least + (n-least)%(d.usable-4); k <= most {
		return k
	}
	return least
}

// columnsOf finds a table by its name: its first page, and its columns' names.
func (d *database) columnsOf(name string) (root uint32, columns []string, err error) {
	err = d.table(1, func(row []value) error {
		if len(row) >= 5 && row[0].text == "table" && row[1].text == name {
			root, columns = uint32(row[3].number), columnNames(row[4].text)
		}
		return nil
	})
	if err == nil && root == 0 {
		err = fmt.Errorf("it has no table %q", name)
	}
	return root, columns, err
}
