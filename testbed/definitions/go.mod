// Definitions of the kinds that split traffic, for the test cluster: `build` copies them out of their modules.
module definitions

go 1.26.0

require (
	istio.io/api v1.27.1
	sigs.k8s.io/gateway-api v1.5.1
)
