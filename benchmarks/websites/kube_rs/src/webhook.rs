// part: webhook
//! Refuses two Websites with one host.

use std::env;
use std::net::{Ipv4Addr, SocketAddr};

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use axum_server::tls_rustls::RustlsConfig;
use kube::ResourceExt;
use kube::core::DynamicObject;
use kube::core::admission::{AdmissionRequest, AdmissionResponse, AdmissionReview};
use kube::runtime::reflector::Store;

use crate::website::Website;

pub async fn serve(websites: Store<Website>) -> anyhow::Result<()> {
    let app = Router::new().route("/validate", post(validate)).with_state(websites);
    let port = env::var("WEBHOOK_PORT").map_or(Ok(9443), |port| port.parse())?;
    let tls = RustlsConfig::from_pem_file(env::var("TLS_CERT")?, env::var("TLS_KEY")?).await?;
    let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
    axum_server::bind_rustls(address, tls).serve(app.into_make_service()).await?;
    Ok(())
}

async fn validate(
    State(websites): State<Store<Website>>,
    Json(review): Json<AdmissionReview<Website>>,
) -> Json<AdmissionReview<DynamicObject>> {
    let request: AdmissionRequest<Website> = match review.try_into() {
        Ok(request) => request,
        Err(error) => return Json(AdmissionResponse::invalid(error.to_string()).into_review()),
    };
    let response = AdmissionResponse::from(&request);
    let Some(site) = request.object else { return Json(response.into_review()) };
    if websites.wait_until_ready().await.is_err() {
        return Json(response.deny("the cache of Websites has ended").into_review());
    }
    let known = websites.state();
    let is_same = |other: &Website| {
        other.name_any() == site.name_any() && other.namespace() == site.namespace()
    };
    let other = known.iter().find(|other| other.spec.host == site.spec.host && !is_same(other));
    let answer = match other {
        Some(other) => {
            let key = format!("{}/{}", other.namespace().unwrap_or_default(), other.name_any());
            response.deny(format!("spec.host: is taken by {key}"))
        }
        None => response,
    };
    Json(answer.into_review())
}
// part: end
