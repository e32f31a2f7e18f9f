module policy

go 1.26

require github.com/kubewarden/policy-sdk-go v0.11.0

require (
	github.com/asaskevich/govalidator v0.0.0-20200907205600-7a23bdc65eef // indirect
	github.com/go-openapi/errors v0.20.2 // indirect
	github.com/go-openapi/strfmt v0.21.3 // indirect
	github.com/kubewarden/k8s-objects v1.29.0-kw1 // indirect
	github.com/mitchellh/mapstructure v1.3.3 // indirect
	github.com/oklog/ulid v1.3.1 // indirect
	github.com/wapc/wapc-guest-tinygo v0.3.3 // indirect
	go.mongodb.org/mongo-driver v1.10.0 // indirect
)
