// part: types and CRD
//! The custom resource.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The wanted state of a website.
#[derive(CustomResource, KubeSchema, Clone, Debug, Deserialize, Serialize)]
#[kube(group = "example.com", version = "v1", kind = "Website", namespaced, status = "WebsiteStatus")]
pub struct WebsiteSpec {
    #[schemars(
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$"),
        length(max = 253)
    )]
    #[x_kube(validation = ("self == oldSelf", "host cannot change"))]
    pub host: String,
    pub image: String,
    pub html: String,
    #[serde(default = "two")]
    #[schemars(range(min = 1, max = 10))]
    pub replicas: i32,
}

fn two() -> i32 {
    2
}

/// The observed state.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WebsiteStatus {
    #[serde(default)]
    pub url: String,
    #[serde(default)]
    pub ready_replicas: i32,
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}
// part: end
