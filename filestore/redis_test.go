package filestore_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"agentop/cmd/testkit"
	"agentop/filestore"
)

// startRedis runs a real server on a socket in a scratch folder.
func startRedis(t *testing.T) *redis.Client {
	t.Helper()
	testkit.Need(t, "redis-server")
	dir := t.TempDir()
	socket := filepath.Join(dir, "redis.sock")
	cmd := exec.Command("redis-server", "--port", "0", "--unixsocket", socket, "--dir", dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: socket, MaxRetries: -1})
	t.Cleanup(func() {
		client.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	eventually(t, "redis answers", func() bool { return client.Ping(context.Background()).Err() == nil })
	return client
}

// answer is one operation's outcome in words, so that the two sides compare.
type answer string

func say(val any, err error) answer {
	switch {
	case errors.Is(err, redis.Nil):
		return "missing"
	case errors.Is(err, filestore.ErrWrongType), err != nil && strings.HasPrefix(err.Error(), "WRONGTYPE"):
		return "wrong type"
	case err != nil:
		return answer("error: " + err.Error())
	}
	return answer(fmt.Sprintf("%v", val))
}

func sayFound(val string, found bool, err error) answer {
	if err == nil && !found {
		return "missing"
	}
	return say(val, err)
}

// sayTTL rounds to ten minutes, since the two are not asked at one instant.
func sayTTL(d time.Duration, err error) answer {
	if err == nil && d > 0 {
		return answer(d.Round(10 * time.Minute).String())
	}
	return say(int64(d), err)
}

// op is an operation on both sides.
type op struct {
	name  string
	ours  func(filestore.Store) answer
	redis func(context.Context, *redis.Client) answer
}

var (
	someKey   = rapid.SampledFrom([]string{"a", "b", "c", "a:1", "a:2", "", "\xff\x00", "é"})
	someValue = rapid.OneOf(rapid.SampledFrom([]string{"", "v", `{"a":1}`, `{"a": 1}`, "[1,2]", "\xff", "\"\\\n\x00", "{", `{"a":1}x`}), rapid.String())
	someTTL   = rapid.SampledFrom([]time.Duration{0, 0, time.Hour, 50 * time.Hour, 31 * 24 * time.Hour})
	someName  = rapid.SampledFrom([]string{"f", "g", "h", "", "\xfe"})
)

// drawOp draws an operation.
func drawOp(t *rapid.T) op {
	draw := rapid.SampledFrom([]func(*rapid.T) op{
		drawSet, drawSet, drawSetNX, drawGet, drawGet, drawDelete, drawExists, drawExpire, drawPersist, drawTTL,
		drawHSet, drawHSet, drawHGet, drawHGetAll, drawHDel, drawHLen, drawKeys, drawUpdate,
	}).Draw(t, "op")
	return draw(t)
}

func drawSet(t *rapid.T) op {
	k, v, ttl := someKey.Draw(t, "key"), someValue.Draw(t, "value"), someTTL.Draw(t, "ttl")
	return op{
		name:  fmt.Sprintf("SET %q %q %v", k, v, ttl),
		ours:  func(s filestore.Store) answer { return say("OK", s.Set(k, v, ttl)) },
		redis: func(ctx context.Context, c *redis.Client) answer { return say(c.Set(ctx, k, v, ttl).Result()) },
	}
}

func drawSetNX(t *rapid.T) op {
	k, v, ttl := someKey.Draw(t, "key"), someValue.Draw(t, "value"), someTTL.Draw(t, "ttl")
	return op{
		name:  fmt.Sprintf("SETNX %q %q %v", k, v, ttl),
		ours:  func(s filestore.Store) answer { return say(s.SetNX(k, v, ttl)) },
		redis: func(ctx context.Context, c *redis.Client) answer { return say(c.SetNX(ctx, k, v, ttl).Result()) },
	}
}

func drawGet(t *rapid.T) op {
	k := someKey.Draw(t, "key")
	return op{
		name:  fmt.Sprintf("GET %q", k),
		ours:  func(s filestore.Store) answer { return sayFound(s.Get(k)) },
		redis: func(ctx context.Context, c *redis.Client) answer { return say(c.Get(ctx, k).Result()) },
	}
}

func drawDelete(t *rapid.T) op {
	ks := rapid.SliceOfN(someKey, 1, 3).Draw(t, "keys")
	return op{
		name:  fmt.Sprintf("DEL %q", ks),
		ours:  func(s filestore.Store) answer { return say(s.Delete(ks...)) },
		redis: func(ctx context.Context, c *redis.Client) answer { return say(c.Del(ctx, ks...).Result()) },
	}
}

func drawExists(t *rapid.T) op {
	ks := rapid.SliceOfN(someKey, 1, 3).Draw(t, "keys")
	return op{
		name:  fmt.Sprintf("EXISTS %q", ks),
		ours:  func(s filestore.Store) answer { return say(s.Exists(ks...)) },
		redis: func(ctx context.Context, c *redis.Client) answer { return say(c.Exists(ctx, ks...).Result()) },
	}
}

func drawExpire(t *rapid.T) op {
	k := someKey.Draw(t, "key")
	ttl := rapid.SampledFrom([]time.Duration{-time.Second, 0, time.Hour, 40 * time.Hour}).Draw(t, "ttl")
	return op{
		name:  fmt.Sprintf("PEXPIRE %q %v", k, ttl),
		ours:  func(s filestore.Store) answer { return say(s.Expire(k, ttl)) },
		redis: func(ctx context.Context, c *redis.Client) answer { return say(c.PExpire(ctx, k, ttl).Result()) },
	}
}

func drawPersist(t *rapid.T) op {
	k := someKey.Draw(t, "key")
	return op{
		name:  fmt.Sprintf("PERSIST %q", k),
		ours:  func(s filestore.Store) answer { return say(s.Persist(k)) },
		redis: func(ctx context.Context, c *redis.Client) answer { return say(c.Persist(ctx, k).Result()) },
	}
}

func drawTTL(t *rapid.T) op {
	k := someKey.Draw(t, "key")
	return op{
		name:  fmt.Sprintf("PTTL %q", k),
		ours:  func(s filestore.Store) answer { return sayTTL(s.TTL(k)) },
		redis: func(ctx context.Context, c *redis.Client) answer { return sayTTL(c.PTTL(ctx, k).Result()) },
	}
}

func drawHSet(t *rapid.T) op {
	k := someKey.Draw(t, "key")
	fields := rapid.MapOfN(someName, someValue, 1, 3).Draw(t, "fields")
	return op{
		name:  fmt.Sprintf("HSET %q %q", k, fields),
		ours:  func(s filestore.Store) answer { return say(s.HSet(k, fields)) },
		redis: func(ctx context.Context, c *redis.Client) answer { return say(c.HSet(ctx, k, fields).Result()) },
	}
}

func drawHGet(t *rapid.T) op {
	k, f := someKey.Draw(t, "key"), someName.Draw(t, "field")
	return op{
		name:  fmt.Sprintf("HGET %q %q", k, f),
		ours:  func(s filestore.Store) answer { return sayFound(s.HGet(k, f)) },
		redis: func(ctx context.Context, c *redis.Client) answer { return say(c.HGet(ctx, k, f).Result()) },
	}
}

func drawHGetAll(t *rapid.T) op {
	k := someKey.Draw(t, "key")
	return op{
		name:  fmt.Sprintf("HGETALL %q", k),
		ours:  func(s filestore.Store) answer { return say(s.HGetAll(k)) },
		redis: func(ctx context.Context, c *redis.Client) answer { return say(c.HGetAll(ctx, k).Result()) },
	}
}

func drawHDel(t *rapid.T) op {
	k, fs := someKey.Draw(t, "key"), rapid.SliceOfN(someName, 1, 3).Draw(t, "fields")
	return op{
		name:  fmt.Sprintf("HDEL %q %q", k, fs),
		ours:  func(s filestore.Store) answer { return say(s.HDel(k, fs...)) },
		redis: func(ctx context.Context, c *redis.Client) answer { return say(c.HDel(ctx, k, fs...).Result()) },
	}
}

func drawHLen(t *rapid.T) op {
	k := someKey.Draw(t, "key")
	return op{
		name:  fmt.Sprintf("HLEN %q", k),
		ours:  func(s filestore.Store) answer { return say(s.HLen(k)) },
		redis: func(ctx context.Context, c *redis.Client) answer { return say(c.HLen(ctx, k).Result()) },
	}
}

func drawKeys(t *rapid.T) op {
	prefix := rapid.SampledFrom([]string{"", "a", "a:"}).Draw(t, "prefix")
	return op{
		name: fmt.Sprintf("KEYS %s*", prefix),
		ours: func(s filestore.Store) answer { return say(s.Keys(prefix)) },
		redis: func(ctx context.Context, c *redis.Client) answer {
			keys, err := c.Keys(ctx, prefix+"*").Result()
			slices.Sort(keys)
			return say(keys, err)
		},
	}
}

// drawUpdate appends to a string and keeps its time to live, as APPEND does.
func drawUpdate(t *rapid.T) op {
	k := someKey.Draw(t, "key")
	return op{
		name: fmt.Sprintf("APPEND %q x", k),
		ours: func(s filestore.Store) answer {
			n := 0
			err := s.Update(k, func(it filestore.Item) (filestore.Item, error) {
				it.Value, it.Exists = it.Value+"x", true
				n = len(it.Value)
				return it, nil
			})
			return say(n, err)
		},
		redis: func(ctx context.Context, c *redis.Client) answer { return say(c.Append(ctx, k, "x").Result()) },
	}
}

// TestAnswersAsRedis gives random sequences of operations to a Redis server,
// to a store in memory and to one with a file that is closed and opened again
// in between.
func TestAnswersAsRedis(t *testing.T) {
	client := startRedis(t)
	dir, n := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		ctx := context.Background()
		if err := client.FlushAll(ctx).Err(); err != nil {
			rt.Fatal(err)
		}
		n++
		url := filestore.FileURL(filepath.Join(dir, fmt.Sprint(n)))
		mem := mustOpen(rt, "mem:")
		file := mustOpen(rt, url)
		defer func() { file.Close() }()
		for range rapid.IntRange(1, 40).Draw(rt, "operations") {
			if rapid.IntRange(0, 19).Draw(rt, "reopen") == 0 {
				if err := file.Close(); err != nil {
					rt.Fatal(err)
				}
				file = mustOpen(rt, url)
			}
			op := drawOp(rt)
			want := op.redis(ctx, client)
			for name, s := range map[string]filestore.Store{"mem": mem, "file": file} {
				if got := op.ours(s); got != want {
					rt.Fatalf("%s: %s answers %q, redis %q", op.name, name, got, want)
				}
			}
		}
		for _, s := range []filestore.Store{mem, file} {
			if err := s.Check(); err != nil {
				rt.Fatal(err)
			}
		}
	})
}

func mustOpen(t *rapid.T, url string) filestore.Store {
	s, err := filestore.Open(context.Background(), url, quiet, filestore.WithFS(noSync{filestore.OS()}))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// noSync is the real file system without its slowest call.
type noSync struct{ filestore.FS }

func (noSync) SyncDir(string) error { return nil }

func (n noSync) CreateTemp(dir, pattern string) (filestore.File, error) {
	f, err := n.FS.CreateTemp(dir, pattern)
	return noSyncFile{f}, err
}

type noSyncFile struct{ filestore.File }

func (noSyncFile) Sync() error { return nil }

// TestExpiresAsRedis lets keys lapse on both sides.
func TestExpiresAsRedis(t *testing.T) {
	client, ctx := startRedis(t), context.Background()
	s := open(t, newPath(t))
	for _, side := range []struct {
		name string
		set  func(key string, ttl time.Duration)
		get  func(key string) answer
		ttl  func(key string) answer
	}{
		{"redis", func(k string, ttl time.Duration) { client.Set(ctx, k, "v", ttl) },
			func(k string) answer { return say(client.Get(ctx, k).Result()) },
			func(k string) answer { return sayTTL(client.PTTL(ctx, k).Result()) }},
		{"ours", func(k string, ttl time.Duration) { s.Set(k, "v", ttl) },
			func(k string) answer { return sayFound(s.Get(k)) },
			func(k string) answer { return sayTTL(s.TTL(k)) }},
	} {
		for ttl := 30 * time.Millisecond; ; ttl *= 2 { // longer, where the machine took all of it
			began := time.Now()
			side.set("short", ttl)
			got := side.get("short")
			if got == "v" {
				break
			}
			if time.Since(began) < ttl {
				t.Fatalf("%s: before: %q", side.name, got)
			}
		}
		eventually(t, side.name+" expires the key", func() bool { return side.get("short") == "missing" })
		if got := side.ttl("short"); got != "-2" {
			t.Errorf("%s: TTL of a lapsed key is %q, want -2", side.name, got)
		}
	}
	if added, err := s.HSet("short", map[string]string{"f": "1"}); added != 1 || err != nil {
		t.Errorf("HSet over a lapsed string = %d, %v; want 1", added, err)
	}
}

// TestModel runs random operations on a store that is closed, reopened, and
// whose clock moves on, against a plain map.
func TestModel(t *testing.T) {
	dir, n := t.TempDir(), 0
	type value struct {
		val string
		end time.Time
	}
	rapid.Check(t, func(rt *rapid.T) {
		clock := newFakeClock()
		n++
		url := filestore.FileURL(filepath.Join(dir, fmt.Sprint(n)))
		reopen := func() filestore.Store {
			s, err := filestore.Open(context.Background(), url, quiet, filestore.WithFS(noSync{filestore.OS()}),
				filestore.WithClock(clock.now, nil))
			if err != nil {
				rt.Fatal(err)
			}
			return s
		}
		s := reopen()
		defer func() { s.Close() }()
		want := map[string]value{}
		lapse := func() {
			maps.DeleteFunc(want, func(_ string, v value) bool { return !v.end.IsZero() && !clock.now().Before(v.end) })
		}
		rt.Repeat(map[string]func(*rapid.T){
			"set": func(rt *rapid.T) {
				k, v, ttl := someKey.Draw(rt, "key"), someValue.Draw(rt, "value"), someTTL.Draw(rt, "ttl")
				s.Set(k, v, ttl)
				want[k] = value{val: v}
				if ttl > 0 {
					want[k] = value{v, clock.now().Add(ttl)}
				}
			},
			"delete": func(rt *rapid.T) {
				k := someKey.Draw(rt, "key")
				_, was := want[k]
				if got, err := s.Delete(k); err != nil || got == 1 != was {
					rt.Fatalf("Delete(%q) = %d, %v; was there: %v", k, got, err, was)
				}
				delete(want, k)
			},
			"time passes": func(rt *rapid.T) {
				clock.pass(rapid.SampledFrom([]time.Duration{time.Second, time.Hour, 300 * time.Hour}).Draw(rt, "by"))
				lapse()
			},
			"reopen": func(rt *rapid.T) {
				if err := s.Close(); err != nil {
					rt.Fatal(err)
				}
				s = reopen()
			},
			"": func(rt *rapid.T) {
				keys, err := s.Keys("")
				if wantKeys := slices.Sorted(maps.Keys(want)); err != nil || !slices.Equal(keys, wantKeys) {
					rt.Fatalf("Keys = %q, %v; want %q", keys, err, wantKeys)
				}
				for k, v := range want {
					if got, _, err := s.Get(k); got != v.val || err != nil {
						rt.Fatalf("Get(%q) = %q, %v; want %q", k, got, err, v.val)
					}
				}
				if err := s.Check(); err != nil {
					rt.Fatal(err)
				}
			},
		})
	})
}
