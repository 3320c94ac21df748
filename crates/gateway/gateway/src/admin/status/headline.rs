//! The first sentence of the status page: the effect of protection now.

use crate::admin::route_reading::RouteRejections;

/// Facts about protection.
#[derive(Debug)]
pub(super) struct ProtectionFacts {
    /// A policy or a limit of requests is configured.
    pub(super) is_active: bool,
    pub(super) is_dry: bool,
    /// Use of the slots of the fullest service. `None` if requests in service are not limited.
    pub(super) slots: Option<SlotUse>,
    /// Routes with rejections in the last seconds.
    pub(super) rejections: Vec<RouteRejections>,
}

/// Use of the slots of a service.
#[derive(Debug)]
pub(super) struct SlotUse {
    /// Requests in service. Beyond the limit are those that do not count for it.
    pub(super) used: u32,
    pub(super) limit: u32,
    /// Name of the service, if there are others.
    pub(super) service: Option<String>,
}

impl ProtectionFacts {
    /// True if requests are rejected.
    pub(super) fn is_rejecting(&self) -> bool {
        !self.rejections.is_empty()
    }

    /// The sentence: `Rejecting 50 % on /page: 8 of 8 slots in use.`
    pub(super) fn sentence(&self) -> String {
        let share = |route: &RouteRejections| {
            let requests = route.requests.max(route.rejected);
            route.rejected as f64 / requests as f64 * 100.0
        };
        let worst = self
            .rejections
            .iter()
            .max_by(|a, b| share(a).total_cmp(&share(b)));
        let effect = match worst {
            Some(route) => {
                let others = match self.rejections.len() - 1 {
                    0 => String::new(),
                    1 => " and less on another route".to_owned(),
                    others => format!(" and less on {others} other routes"),
                };
                // A small share is not none.
                let share = share(route).max(1.0);
                format!("Rejecting {share:.0} % on {}{others}", route.route)
            }
            None if self.is_dry => "Dry run: rejecting nothing".to_owned(),
            None if self.is_active => "Rejecting nothing".to_owned(),
            None => return "No protection: every request is admitted.".to_owned(),
        };
        let Some(SlotUse {
            used,
            limit,
            service,
        }) = &self.slots
        else {
            return effect + ".";
        };
        let of_service = service
            .as_ref()
            .map_or_else(String::new, |name| format!(" of {name}"));
        let beyond = match used.saturating_sub(*limit) {
            0 => String::new(),
            beyond => format!(", {beyond} more in service that do not count"),
        };
        let used = used.min(limit);
        format!("{effect}: {used} of {limit} slots{of_service} in use{beyond}.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(limit: Option<u32>, rejections: &[(&str, u64, u64)]) -> ProtectionFacts {
        let rejections = rejections
            .iter()
            .map(|(route, requests, rejected)| RouteRejections {
                route: (*route).to_owned(),
                requests: *requests,
                rejected: *rejected,
            });
        ProtectionFacts {
            is_active: true,
            is_dry: false,
            slots: limit.map(|limit| SlotUse {
                used: 8,
                limit,
                service: None,
            }),
            rejections: rejections.collect(),
        }
    }

    #[test]
    fn the_sentence_names_the_route_with_the_largest_share() {
        let page = ("/page", 100, 50);
        for (facts, expected) in [
            (
                facts(Some(8), &[page]),
                "Rejecting 50 % on /page: 8 of 8 slots in use.",
            ),
            (
                facts(None, &[("/a", 1000, 90), page]),
                "Rejecting 50 % on /page and less on another route.",
            ),
            (
                facts(Some(9), &[page, ("/a", 9, 1), ("/b", 9, 1)]),
                "Rejecting 50 % on /page and less on 2 other routes: 8 of 9 slots in use.",
            ),
            (facts(None, &[("/a", 1000, 1)]), "Rejecting 1 % on /a."),
            (
                facts(Some(9), &[]),
                "Rejecting nothing: 8 of 9 slots in use.",
            ),
            (facts(None, &[]), "Rejecting nothing."),
        ] {
            assert_eq!(facts.is_rejecting(), !facts.rejections.is_empty());
            assert_eq!(facts.sentence(), expected);
        }
        let mut dry = facts(Some(8), &[]);
        dry.is_dry = true;
        assert_eq!(
            dry.sentence(),
            "Dry run: rejecting nothing: 8 of 8 slots in use."
        );
        assert_eq!(
            facts(Some(6), &[page]).sentence(),
            "Rejecting 50 % on /page: 6 of 6 slots in use, 2 more in service that do not count."
        );
        let mut one = facts(Some(9), &[page]);
        one.slots.as_mut().unwrap().service = Some("shop".to_owned());
        assert_eq!(
            one.sentence(),
            "Rejecting 50 % on /page: 8 of 9 slots of shop in use."
        );
        let mut none = facts(None, &[]);
        none.is_active = false;
        assert_eq!(none.sentence(), "No protection: every request is admitted.");
    }
}
