//! Settings that can be used and may not have the intended effect.

use posthaste_admission::{Amount, Controller};

use crate::{GatewayConfig, Prices, ProtectionPolicy, Watch};

impl GatewayConfig {
    /// Returns a sentence for each setting that may not have the intended effect, with the remedy.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.protection.policy != ProtectionPolicy::Prices {
            return warnings;
        }
        if self.protection.dry_run {
            let message =
                "prices cost nothing: protection.dry_run admits every request; remove it to charge";
            warnings.push(message.to_owned());
        }
        if self.demand.watch == Watch::Workers {
            let message = "prices rise only while the gateway's own threads are busy or its limit is full \
                (demand.watch = \"workers\"): name what does the work of the service, such as \
                demand.watch = { process = \"NAME\" } or { upstream = \"X-Busy\" }";
            warnings.push(message.to_owned());
        }
        let controller = self.prices.as_ref().map(|prices| &prices.controller);
        let most = most(controller.unwrap_or(&Prices::default().controller));
        if let Some(accounts) = &self.accounts
            && accounts.broker.is_some()
            && accounts.unreported < most
        {
            let unreported = accounts.unreported;
            warnings.push(format!(
                "prices above {unreported} cannot be paid: set accounts.unreported to the highest price, {most}, or more"
            ));
        }
        warnings
    }
}

/// The highest price of a controller.
fn most(controller: &Controller) -> Amount {
    match controller {
        Controller::Steps(steps) => steps.most,
        Controller::ProportionalIntegral(parameters) => parameters.most,
        Controller::Rajomon(parameters) => parameters.most,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warnings(keys: &str) -> Vec<String> {
        let route = "[[route]]\npath = \"/\"\nupstream = [\"127.0.0.1:9000\"]";
        let text = format!("listen = \":80\"\n{keys}\n{route}");
        GatewayConfig::read(&text).unwrap().warnings()
    }

    #[test]
    fn prices_that_cannot_rise_or_be_paid_are_named() {
        let prices = "[protection]\npolicy = \"prices\"\n";
        assert_eq!(warnings("[protection]\npolicy = \"limit\""), [""; 0]);
        let one = warnings(prices);
        assert!(
            one.len() == 1 && one[0].contains("demand.watch = "),
            "{one:?}"
        );
        let watch = "[demand]\nwatch = { process = \"shop\" }\n";
        assert_eq!(warnings(&(prices.to_owned() + watch)), [""; 0]);
        let dry = warnings(&format!("{prices}dry_run = true\n{watch}"));
        assert!(dry.len() == 1 && dry[0].contains("dry_run"), "{dry:?}");
        let broker = "broker = { url = \"http://127.0.0.1:8090\", token = \"t\" }";
        let accounts = format!("{prices}{watch}[accounts]\nunreported = \"0.5\"\n{broker}\n");
        let few = warnings(&accounts);
        assert!(
            few.len() == 1 && few[0].contains("prices above 0.5"),
            "{few:?}"
        );
    }
}
