//! A controller of kube-rs as a client of the benchmarks: to reconcile is to be given the object from the cache.
//! See ../../../CONTRACT.md, "Operators".

use std::convert::Infallible;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::reflector::Store;
use peers::{Arguments, Outcome, Reads, Subject, handle, serve};
use tokio::runtime::Runtime;

struct Operator {
    runtime: Runtime,
    controller: Option<Controller<Pod>>,
    store: Store<Pod>,
    read: fn(&Pod),
}

async fn reconcile(pod: Arc<Pod>, read: Arc<fn(&Pod)>) -> Result<Action, Infallible> {
    handle(&pod, *read);
    Ok(Action::await_change())
}

impl Subject for Operator {
    fn start(&mut self) {
        let controller = self.controller.take().expect("it starts once");
        let reconciled = controller.run(reconcile, |_, never, _| match *never {}, Arc::new(self.read));
        let told = reconciled.inspect_err(|error| eprintln!("{error}"));
        self.runtime.spawn(told.for_each(|_| futures::future::ready(())));
    }

    fn wait_synced(&self) -> Outcome<()> {
        Ok(self.runtime.block_on(self.store.wait_until_ready())?)
    }

    fn reads(&self) -> Option<Reads<'_>> {
        None
    }
}

fn main() -> Outcome<()> {
    let given = Arguments::parse()?;
    let runtime = Runtime::new()?;
    let client = runtime.block_on(given.connect())?;
    let one_worker = Config::default().concurrency(1);
    let controller = Controller::new(Api::<Pod>::all(client), given.watcher()).with_config(one_worker);
    let store = controller.store();
    let read = given.reader()?;
    serve("kube-rs 5.0.0", &given, Operator { runtime, controller: Some(controller), store, read })
}
