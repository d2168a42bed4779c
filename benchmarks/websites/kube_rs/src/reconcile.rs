// part: reconcile
//! Makes what a Website owns, and keeps it so.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::runtime::events::{Event, EventType, Recorder};
use kube::runtime::finalizer::{self, finalizer};
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::website::{Website, WebsiteStatus};

const MANAGER: &str = "websites";

pub struct Context {
    pub client: Client,
    pub recorder: Recorder,
    pub dns: String,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("Kubernetes: {0}")]
    Kube(#[from] kube::Error),
    #[error("DNS: {0}")]
    Dns(#[from] reqwest::Error),
    #[error("finalizer: {0}")]
    Finalizer(#[from] Box<finalizer::Error<Error>>),
}

// part: finalizer
pub async fn reconcile(site: Arc<Website>, context: Arc<Context>) -> Result<Action, Error> {
    let sites = Api::<Website>::namespaced(context.client.clone(), &site.namespace().unwrap_or_default());
    finalizer(&sites, "example.com/dns", site, async |event| match event {
        finalizer::Event::Apply(site) => publish(&site, &sites, &context).await,
        finalizer::Event::Cleanup(site) => {
            dns(&context, &site, |client, url| client.delete(url)).await?;
            Ok(Action::await_change())
        }
    })
    .await
    .map_err(|error| Error::Finalizer(Box::new(error)))
}

async fn dns(
    context: &Context,
    site: &Website,
    request: impl Fn(&reqwest::Client, String) -> reqwest::RequestBuilder,
) -> Result<(), Error> {
    let url = format!("{}/{}", context.dns, site.spec.host);
    let answer = request(&reqwest::Client::new(), url).send().await;
    if let Err(error) = answer.and_then(reqwest::Response::error_for_status) {
        event(context, site, EventType::Warning, "DNSFailed", error.to_string()).await?;
        return Err(error.into());
    }
    Ok(())
}

// part: reconcile
async fn publish(site: &Website, sites: &Api<Website>, context: &Context) -> Result<Action, Error> {
    if site.status.is_none() {
        let note = format!("http://{} is being published", site.spec.host);
        event(context, site, EventType::Normal, "Created", note).await?;
    }
    apply::<ConfigMap>(context, site, json!({"data": {"index.html": site.spec.html}})).await?;
    let deployment = apply::<Deployment>(context, site, deployment(site)).await?;
    apply::<Service>(context, site, service(site)).await?;
    dns(context, site, |client, url| client.put(url)).await?;
    let ready = deployment.status.and_then(|status| status.ready_replicas).unwrap_or(0);
    let status = status(site, ready);
    if site.status.as_ref() != Some(&status) {
        let patch = Patch::Merge(json!({ "status": status }));
        sites.patch_status(&site.name_any(), &PatchParams::default(), &patch).await?;
    }
    Ok(Action::await_change())
}

async fn apply<K>(context: &Context, site: &Website, mut object: Value) -> Result<K, Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Serialize,
    K: std::fmt::Debug,
{
    let name = site.name_any();
    object["apiVersion"] = json!(K::api_version(&()));
    object["kind"] = json!(K::kind(&()));
    object["metadata"] = json!({"name": name, "ownerReferences": [site.controller_owner_ref(&())]});
    let api = Api::<K>::namespaced(context.client.clone(), &site.namespace().unwrap_or_default());
    Ok(api.patch(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(object)).await?)
}

fn deployment(site: &Website) -> Value {
    let labels = json!({"website": site.name_any()});
    json!({"spec": {
        "replicas": site.spec.replicas,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {
                "containers": [{
                    "name": "web",
                    "image": site.spec.image,
                    "ports": [{"containerPort": 80}],
                    "volumeMounts": [{"name": "html", "mountPath": "/usr/share/nginx/html"}],
                }],
                "volumes": [{"name": "html", "configMap": {"name": site.name_any()}}],
            },
        },
    }})
}

fn service(site: &Website) -> Value {
    json!({"spec": {"selector": {"website": site.name_any()}, "ports": [{"port": 80}]}})
}

fn status(site: &Website, ready: i32) -> WebsiteStatus {
    let is_ready = ready >= site.spec.replicas;
    let state = if is_ready { "True" } else { "False" };
    let conditions = site.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let old = conditions.iter().find(|each| each.type_ == "Ready" && each.status == state);
    WebsiteStatus {
        url: format!("http://{}", site.spec.host),
        ready_replicas: ready,
        conditions: vec![Condition {
            type_: "Ready".into(),
            status: state.into(),
            reason: if is_ready { "Available" } else { "Progressing" }.into(),
            message: format!("{ready} of {} replicas are ready", site.spec.replicas),
            observed_generation: site.metadata.generation,
            last_transition_time: old
                .map_or_else(|| Time(k8s_openapi::jiff::Timestamp::now()), |each| each.last_transition_time.clone()),
        }],
    }
}

async fn event(
    context: &Context,
    site: &Website,
    type_: EventType,
    reason: &str,
    note: String,
) -> Result<(), Error> {
    let reason = reason.into();
    let event = Event { type_, reason, note: Some(note), action: "Reconcile".into(), secondary: None };
    Ok(context.recorder.publish(&event, &site.object_ref(&())).await?)
}

pub fn retry(_: Arc<Website>, _: &Error, _: Arc<Context>) -> Action {
    Action::requeue(Duration::from_secs(1))
}
// part: end
