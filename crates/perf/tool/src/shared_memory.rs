//! The shared memory of a run at the server: registered before the first request, unregistered however the run ends.

use std::time::Duration;

use galatea_client::Target;
use galatea_perf_load::data::{RegionNames, Regions, Requests};
use galatea_perf_types::{console::Console, failure::Result, settings::Settings};

use crate::{
    server_link::{ServerLink, ask_within},
    system_clock::SystemClock,
};

/// Longest time for unregistering when the user wants the program to end at once.
const HASTY_END_LIMIT: Duration = Duration::from_secs(5);

/// The regions that the server has, and the connection over which it got them.
pub struct RegisteredRegions {
    regions: Regions,
    link: ServerLink,
}

impl RegisteredRegions {
    /// Registers a region for each tensor with the server at `target`. If one fails, the others are unregistered.
    pub fn register(
        requests: &Requests,
        settings: &Settings,
        target: Target,
        clock: &SystemClock,
    ) -> Result<Self> {
        let mut link = ServerLink::open(target.clone())?;
        let Settings { shared_memory, output_region_size, .. } = *settings;
        let mut regions = Regions::plan(requests, shared_memory, output_region_size);
        let names = regions.names();
        clock.set_last_act(Some(Box::new(move || remove_in_haste(&names, target))));
        let registered = link.ask(async |admin| {
            let registered = regions.register(requests, admin).await;
            if registered.is_err() {
                // The reason for the failure is reported; an error of unregistering the others adds nothing.
                let _ = regions.unregister(admin).await;
            }
            registered
        });
        if registered.is_err() {
            clock.set_last_act(None);
        }
        registered.map(|()| Self { regions, link })
    }

    /// Puts the tensors of the requests into the regions.
    pub fn use_for(&self, requests: &mut Requests, console: &mut dyn Console) {
        self.regions.use_for(requests, console);
    }

    /// Unregisters all regions, and warns if the server refuses.
    pub fn unregister(mut self, clock: &SystemClock, console: &mut dyn Console) {
        let regions = &mut self.regions;
        let given_back = self.link.ask(async |admin| regions.unregister(admin).await);
        clock.set_last_act(None);
        if let Err(error) = given_back {
            console.err(&format!(
                "WARNING: unable to unregister shared memory: {}\n",
                error.message()
            ));
        }
    }
}

/// Removes the regions over a connection of its own, as the other threads of the program go on until it ends.
fn remove_in_haste(names: &RegionNames, target: Target) {
    names.unlink();
    // A server that does not answer keeps them; the user wants the program to end.
    let _ = ask_within(HASTY_END_LIMIT, target, async |admin| names.remove(admin).await);
}
