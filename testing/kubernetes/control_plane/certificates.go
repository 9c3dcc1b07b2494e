package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"
)

// validity is how long certificates are valid. They start an hour ago, so that a clock may be set
// back a little.
const validity = 24 * time.Hour

// authority signs the certificates of a cluster. Its files are ca.crt and ca.key in a folder.
type authority struct {
	folder      string
	certificate *x509.Certificate
	key         crypto.Signer
}

// newAuthority creates an authority in folder.
func newAuthority(folder string) (*authority, error) {
	a := &authority{folder: folder}
	template := newTemplate(pkix.Name{CommonName: "cluster"})
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	return a, a.issue("ca", template)
}

// openAuthority reads the authority in folder.
func openAuthority(folder string) (*authority, error) {
	text, err := os.ReadFile(filepath.Join(folder, "ca.crt"))
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, err := keyutil.PrivateKeyFromFile(filepath.Join(folder, "ca.key"))
	if err != nil {
		return nil, err
	}
	return &authority{folder, certificate, key.(crypto.Signer)}, nil
}

// server writes the certificate of a server on loopback.
func (a *authority) server(name string) error {
	template := newTemplate(pkix.Name{CommonName: name})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	template.DNSNames = []string{"localhost"}
	return a.issue(name, template)
}

// client writes the certificate of a user, and the kubeconfig file of the same name.
func (a *authority) client(name, user string, groups []string, server string) error {
	template := newTemplate(pkix.Name{CommonName: user, Organization: groups})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if err := a.issue(name, template); err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["cluster"] = &clientcmdapi.Cluster{Server: server, CertificateAuthority: a.file("ca.crt")}
	config.AuthInfos["user"] = &clientcmdapi.AuthInfo{
		ClientCertificate: a.file(name + ".crt"), ClientKey: a.file(name + ".key"),
	}
	config.Contexts["context"] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: "user"}
	config.CurrentContext = "context"
	return clientcmd.WriteToFile(*config, a.file(name+".kubeconfig"))
}

func (a *authority) file(name string) string { return filepath.Join(a.folder, name) }

// issue creates a key and a certificate, which the authority signs, or itself if it has none yet.
func (a *authority) issue(name string, template *x509.Certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if a.certificate == nil {
		a.certificate, a.key = template, key
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return fmt.Errorf("certificate of %s: %w", name, err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	if err := os.WriteFile(a.file(name+".crt"), text, 0o644); err != nil {
		return err
	}
	secret, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	return os.WriteFile(a.file(name+".key"), secret, 0o600)
}

func newTemplate(subject pkix.Name) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      subject,
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(validity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}
