package importer

import (
	"database/sql"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// sqlite is a database that SQLite itself writes.
type sqlite struct {
	t    *testing.T
	db   *sql.DB
	path string
}

func newSQLite(t *testing.T, queries ...string) *sqlite {
	t.Helper()
	path := filepath.Join(t.TempDir(), "it.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	s := &sqlite{t, db, path}
	for _, q := range queries {
		s.exec(q)
	}
	return s
}

func (s *sqlite) exec(query string, args ...any) {
	s.t.Helper()
	if _, err := s.db.Exec(query, args...); err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
}

// files are the database and its write-ahead log as they are on disk now.
func (s *sqlite) files() (file, wal []byte) {
	s.t.Helper()
	file, err := os.ReadFile(s.path)
	if err != nil {
		s.t.Fatal(err)
	}
	wal, _ = os.ReadFile(s.path + "-wal")
	return file, wal
}

// rows is what SQLite reads, in the order of the rows' numbers.
func (s *sqlite) rows(table string) (rows []string) {
	s.t.Helper()
	found, err := s.db.Query("SELECT * FROM " + table + " ORDER BY rowid")
	if err != nil {
		s.t.Fatal(err)
	}
	defer found.Close()
	columns, err := found.Columns()
	if err != nil {
		s.t.Fatal(err)
	}
	for found.Next() {
		row, to := make([]any, len(columns)), make([]any, len(columns))
		for i := range row {
			to[i] = &row[i]
		}
		if err := found.Scan(to...); err != nil {
			s.t.Fatal(err)
		}
		var words []string
		for i, v := range row {
			word := fmt.Sprint(columns[i], "=")
			switch v := v.(type) {
			case nil:
				word += "null"
			case int64:
				word += fmt.Sprint(float64(v))
			case []byte:
				word += string(v)
			default:
				word += fmt.Sprint(v)
			}
			words = append(words, word)
		}
		rows = append(rows, strings.Join(words, " "))
	}
	return rows
}

// ours is what our reader reads.
func ours(t *testing.T, file, wal []byte, table string) (rows []string) {
	t.Helper()
	db, err := openDatabase(file, wal)
	if err != nil {
		t.Fatal(err)
	}
	root, columns, err := db.columnsOf(table)
	if err != nil {
		t.Fatal(err)
	}
	err = db.table(root, func(row []value) error {
		var words []string
		for i, v := range row {
			word := columns[i] + "="
			switch v.kind {
			case isNull:
				word += "null"
			case isNumber:
				word += fmt.Sprint(v.number)
			case isText:
				word += v.text
			}
			words = append(words, word)
		}
		rows = append(rows, strings.Join(words, " "))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func (s *sqlite) compare(when string) {
	s.t.Helper()
	file, wal := s.files()
	if got, want := ours(s.t, file, wal, "t"), s.rows("t"); !reflect.DeepEqual(got, want) {
		s.t.Errorf("%s: %d rows, SQLite reads %d: got %.300q, want %.300q", when, len(got), len(want), got, want)
	}
}

const tableT = "CREATE TABLE t (a TEXT NOT NULL, -- (not, a, column)\n \"b c\" NUMERIC(3, 4) DEFAULT '),(', `d` BLOB CHECK (d <> ',') /* e, */ , [f] REAL, UNIQUE (a), CONSTRAINT x CHECK (a <> ')'))"

// TestRowsAreThoseThatSQLiteReads compares with SQLite itself: rows of all
// sizes, so that some have overflow pages, in trees of several levels.
func TestRowsAreThoseThatSQLiteReads(t *testing.T) {
	for _, journal := range []string{"DELETE", "WAL"} {
		for _, size := range []int{512, 4096, 65536} {
			t.Run(fmt.Sprint(journal, size), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(size), 1))
				s := newSQLite(t, fmt.Sprintf("PRAGMA page_size=%d", size), "PRAGMA journal_mode="+journal, tableT)
				s.compare("empty")
				for round := range 3 {
					s.exec("BEGIN")
					for i := range 300 {
						n := rng.IntN(60)
						if i%20 == 0 {
							n = rng.IntN(3 * size)
						}
						s.exec("INSERT INTO t VALUES (?, ?, ?, ?)", fmt.Sprint(round, i, strings.Repeat("ä", n)),
							rng.Int64()>>rng.IntN(64)*int64(1-2*rng.IntN(2)), []byte("blob"), rng.Float64())
					}
					s.exec("INSERT INTO t VALUES (?, NULL, 0, 1)", fmt.Sprint("null", round))
					s.exec("COMMIT")
					s.compare("inserted")
					s.exec("DELETE FROM t WHERE rowid % 3 = 1")
					s.exec("UPDATE t SET \"b c\" = 7 WHERE rowid % 5 = 1")
					s.compare("deleted and changed")
					if round == 1 {
						s.exec("PRAGMA wal_checkpoint(RESTART)")
						s.compare("moved into the database")
					}
				}
			})
		}
	}
}

// What a transaction has written that has not ended, and what is left of an
// older log, does not count.
func TestUnfinishedTransactionIsNotRead(t *testing.T) {
	s := newSQLite(t, "PRAGMA journal_mode=WAL", "PRAGMA wal_autocheckpoint=0", "CREATE TABLE t (a)", "INSERT INTO t VALUES ('kept')")
	file, before := s.files()
	s.exec("INSERT INTO t VALUES ('later')")
	_, after := s.files()
	frame := len(after) - len(before)
	if frame <= frameHeader {
		t.Fatalf("the log grew by %d bytes", frame)
	}
	kept := []string{"a=kept"}
	for name, wal := range map[string][]byte{
		"cut off in a frame": after[:len(after)-1],
		"another salt":       append(append(before[:len(before):len(before)], after[len(before):len(before)+8]...), append([]byte("12345678"), after[len(before)+16:]...)...),
		"a damaged page":     append(after[:len(after)-1:len(after)-1], after[len(after)-1]^1),
	} {
		if got := ours(t, file, wal, "t"); !reflect.DeepEqual(got, kept) {
			t.Errorf("%s: got %q, want %q", name, got, kept)
		}
	}
	if got := ours(t, file, after, "t"); len(got) != 2 {
		t.Errorf("the whole log: got %q", got)
	}
	open := append([]byte(nil), after...)
	clear(open[len(before)+4 : len(before)+8]) // is set in a transaction's last frame
	if got := ours(t, file, summed(open), "t"); !reflect.DeepEqual(got, kept) {
		t.Errorf("without the transaction's end: got %q, want %q", got, kept)
	}
	if got := ours(t, file, summed(append([]byte(nil), after...)), "t"); len(got) != 2 {
		t.Errorf("with its end: got %q", got)
	}
}

// summed is a write-ahead log with its checksums made anew.
func summed(wal []byte) []byte {
	size := int(binary.BigEndian.Uint32(wal[8:]))
	sum := walSum{order: binary.LittleEndian}
	if wal[3]&1 != 0 {
		sum.order = binary.BigEndian
	}
	sum.add(wal[:24])
	for rest := wal[walHeader:]; len(rest) > 0; rest = rest[frameHeader+size:] {
		sum.add(rest[:8])
		sum.add(rest[frameHeader : frameHeader+size])
		binary.BigEndian.PutUint32(rest[16:], sum.s0)
		binary.BigEndian.PutUint32(rest[20:], sum.s1)
	}
	return wal
}

func TestDatabaseOfAnotherKindIsRefused(t *testing.T) {
	utf16, _ := newSQLite(t, "PRAGMA encoding='UTF-16'", "CREATE TABLE t (a)").files()
	noRowid, _ := newSQLite(t, "CREATE TABLE providers (id TEXT PRIMARY KEY, app_type, name, settings_config, sort_index, created_at) WITHOUT ROWID").files()
	other, _ := newSQLite(t, "CREATE TABLE others (a)").files()
	columns, _ := newSQLite(t, "CREATE TABLE providers (id, name)").files()
	for name, file := range map[string][]byte{
		"UTF-16": utf16, "a table without row numbers": noRowid, "no such table": other, "other columns": columns,
		"empty": nil, "text": []byte(strings.Repeat("no database ", 100)), "cut off": other[:600],
	} {
		if rows, err := ccSelect(file, nil); err == nil {
			t.Errorf("%s: got %v and no error", name, rows)
		}
	}
}

// Providers come in the order in which cc-switch shows them.
func TestProvidersAreInCCSwitchsOrder(t *testing.T) {
	s := newSQLite(t, "CREATE TABLE providers (id TEXT, app_type TEXT, name TEXT, settings_config TEXT, created_at INTEGER)",
		"INSERT INTO providers VALUES ('9', 'codex', 'older than the column', '{}', 1)",
		"ALTER TABLE providers ADD COLUMN sort_index INTEGER",
		"INSERT INTO providers VALUES ('3', 'codex', 'last', '{}', 2, NULL)", "INSERT INTO providers VALUES ('1', 'codex', 'first', '{}', 9, 10)",
		"INSERT INTO providers VALUES ('0', 'claude', 'of another agent', '{}', 9, 99)", "INSERT INTO providers VALUES ('2', 'codex', 'third', '{}', 2, NULL)")
	file, wal := s.files()
	rows, err := ccSelect(file, wal)
	var names []string
	for _, r := range rows {
		names = append(names, r.name)
	}
	want := []string{"of another agent", "first", "older than the column", "third", "last"}
	if err != nil || !reflect.DeepEqual(names, want) {
		t.Errorf("got %q, %v, want %q", names, err, want)
	}
}
