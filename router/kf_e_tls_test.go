package router

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentop/router/fakeserver"
)

// authority makes certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string // a file
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{pem: filepath.Join(t.TempDir(), "ca.pem")}
	a.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	a.cert, _ = x509.ParseCertificate(der)
	if err := os.WriteFile(a.pem, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return a
}

// serve starts a TLS server with a certificate for one name that ends then.
func (a *authority) serve(t *testing.T, name string, ends time.Time) string {
	t.Helper()
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: ends.Add(-2 * time.Hour), NotAfter: ends}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(fakeserver.New(fakeserver.Options{Name: "tls"}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestKF_E10_TheCertificatesFaultIsNamed(t *testing.T) {
	a := newAuthority(t)
	soon, past := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	plain := fakeserver.New(fakeserver.Options{})
	if err := plain.Start(); err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	for _, c := range []struct{ name, url, more, want string }{
		{"unknown authority", a.serve(t, "127.0.0.1", soon), "", "signed by an authority that is not known here; name its CA in `ca_file`"},
		{"expired", a.serve(t, "127.0.0.1", past), ", ca_file: " + a.pem, "has expired"},
		{"wrong name", a.serve(t, "elsewhere.example", soon), ", ca_file: " + a.pem, "is for another name than 127.0.0.1"},
		{"no TLS at all", strings.Replace(plain.URL(), "http:", "https:", 1), "", "does not speak TLS; write http://"},
		{"good", a.serve(t, "127.0.0.1", soon), ", ca_file: " + a.pem, ""},
		{"not checked", a.serve(t, "elsewhere.example", past), ", insecure_skip_verify: true", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, nil)
			b.only(c.url, "key: none"+c.more)
			res := b.claude("s1", user("hello"))
			body := read(t, res)
			if c.want == "" && res.StatusCode != 200 || c.want != "" && (res.StatusCode != 400 || !strings.Contains(body, c.want)) {
				t.Errorf("%d %s, want %q", res.StatusCode, body, c.want)
			}
		})
	}
}

func TestKF_E11_TheSystemsRootsAndSSLCERTFILE(t *testing.T) {
	if os.Getenv("AGENTOP_TEST_CHILD") != "" {
		return
	}
	a := newAuthority(t)
	url := a.serve(t, "127.0.0.1", time.Now().Add(time.Hour))
	child(t, "TestChildCertFile", "SSL_CERT_FILE="+a.pem, "AGENTOP_TEST_URL="+url)
}

func TestChildCertFile(t *testing.T) {
	inChild(t)
	other := newAuthority(t)
	for _, more := range []string{"", ", ca_file: " + other.pem} { // ca_file adds, and replaces nothing
		b := newBench(t, nil)
		b.only(os.Getenv("AGENTOP_TEST_URL"), "key: none"+more)
		res := b.claude("s1", user("hello"))
		if body := read(t, res); res.StatusCode != 200 {
			t.Errorf("%q: %d %s", more, res.StatusCode, body)
		}
	}
}
