// part: main
//! Websites with kube-rs: a Website is a ConfigMap, a Deployment, a Service and a DNS record.
//!
//!     websites crd    print the CustomResourceDefinition
//!     websites        run; DNS_URL, WEBHOOK_PORT, TLS_CERT and TLS_KEY are environment variables

mod reconcile;
mod webhook;
mod website;

use std::env;
use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::runtime::events::{Recorder, Reporter};
use kube::runtime::{Controller, watcher};
use kube::{Api, Client, CustomResourceExt};

use crate::reconcile::{Context, reconcile, retry};
use crate::website::Website;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    if env::args().nth(1).as_deref() == Some("crd") {
        println!("{}", serde_json::to_string_pretty(&Website::crd())?);
        return Ok(());
    }
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let client = Client::try_default().await?;
    let everywhere = watcher::Config::default;
    let controller = Controller::new(Api::<Website>::all(client.clone()), everywhere())
        .owns(Api::<ConfigMap>::all(client.clone()), everywhere())
        .owns(Api::<Deployment>::all(client.clone()), everywhere())
        .owns(Api::<Service>::all(client.clone()), everywhere())
        .shutdown_on_signal();
    let websites = controller.store();
    let reporter = Reporter { controller: "websites".into(), instance: env::var("HOSTNAME").ok() };
    let context = Arc::new(Context {
        client: client.clone(),
        recorder: Recorder::new(client, reporter),
        dns: env::var("DNS_URL")?,
    });
    let reconciled = controller.run(reconcile, retry, context).for_each(|result| async move {
        if let Err(error) = result {
            tracing::warn!("{error}");
        }
    });
    tokio::select! {
        () = reconciled => Ok(()),
        ended = webhook::serve(websites) => ended,
    }
}
// part: end
