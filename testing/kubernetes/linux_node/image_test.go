package linux_node

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
)

// checkImage is the image of all containers but the plugin's.
const checkImage = "example.com/check:1"

// writeImage writes the archive of an image that contains one program, as containerd imports it.
func writeImage(archive, name, program string) error {
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	layer, err := tarOf(map[string][]byte{"check": content}, 0o755)
	if err != nil {
		return err
	}
	files := map[string][]byte{}
	blob := func(mediaType string, content []byte) map[string]any {
		digest := fmt.Sprintf("%x", sha256.Sum256(content))
		files["blobs/sha256/"+digest] = content
		return map[string]any{"mediaType": mediaType, "digest": "sha256:" + digest, "size": len(content)}
	}
	const prefix = "application/vnd.oci.image."
	packed := blob(prefix+"layer.v1.tar", layer)
	config := blob(prefix+"config.v1+json", mustJSON(map[string]any{
		"os": "linux", "architecture": "amd64", "config": map[string]any{"Entrypoint": []string{"/check"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []any{packed["digest"]}},
	}))
	manifest := blob(prefix+"manifest.v1+json", mustJSON(map[string]any{
		"schemaVersion": 2, "mediaType": prefix + "manifest.v1+json", "config": config, "layers": []any{packed},
	}))
	manifest["annotations"] = map[string]string{"io.containerd.image.name": name}
	files["index.json"] = mustJSON(map[string]any{"schemaVersion": 2, "manifests": []any{manifest}})
	files["oci-layout"] = mustJSON(map[string]string{"imageLayoutVersion": "1.0.0"})
	text, err := tarOf(files, 0o644)
	if err != nil {
		return err
	}
	return os.WriteFile(archive, text, 0o644)
}

func tarOf(files map[string][]byte, mode int64) ([]byte, error) {
	var text bytes.Buffer
	archive := tar.NewWriter(&text)
	for name, content := range files {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(content))}); err != nil {
			return nil, err
		}
		if _, err := archive.Write(content); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), archive.Close()
}

// mustJSON is for values that can always be written.
func mustJSON(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return text
}
