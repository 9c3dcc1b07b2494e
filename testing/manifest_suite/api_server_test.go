package manifests

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/capabilities"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
)

var _ runtime.Object = &apps.DaemonSet{}
var _ = serializer.EnableStrict

func TestX(t *testing.T) {
	capabilities.Initialize(capabilities.Capabilities{AllowPrivileged: true})
	fmt.Println(daemonset.Strategy.WarningsOnCreate(context.Background(), &apps.DaemonSet{}), configmap.Strategy, core.ConfigMap{}, legacyscheme.Scheme)
}
