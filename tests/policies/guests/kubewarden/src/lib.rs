//! A policy as the SDK of Kubewarden makes it.

mod judge;

use kubewarden_policy_sdk::host_capabilities::net::lookup_host;
use kubewarden_policy_sdk::request::ValidationRequest;
use kubewarden_policy_sdk::settings::Validatable;
use kubewarden_policy_sdk::{
    accept_request, mutate_request, protocol_version_guest, reject_request, validate_settings, wapc_guest as guest,
};

use guest::prelude::*;
use judge::Settings;

impl Validatable for Settings {
    fn validate(&self) -> Result<(), String> {
        judge::check(self)
    }
}

/// The way in.
#[unsafe(no_mangle)]
pub extern "C" fn wapc_init() {
    register_function("validate", validate);
    register_function("validate_settings", validate_settings::<Settings>);
    register_function("protocol_version", protocol_version_guest);
}

fn validate(payload: &[u8]) -> CallResult {
    let request: ValidationRequest<Settings> = ValidationRequest::new(payload)?;
    if request.settings.look_up {
        // A policy that goes on without the answer.
        let _ = lookup_host("example.com");
    }
    match judge::judge(&request.request.object, &request.settings) {
        Ok(None) => accept_request(),
        Ok(Some(object)) => mutate_request(object),
        Err(why) => reject_request(Some(why), Some(403), None, None),
    }
}
