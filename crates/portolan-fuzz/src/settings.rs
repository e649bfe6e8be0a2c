//! Files that users write: logins by host, tables of counts.

use portolan_judge::{Corrections, Settings, judge_rows};
use portolan_supply::Netrc;

use crate::{Target, texts};

pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "netrc",
        about: "a `.netrc`",
        run: |bytes| {
            let text = std::str::from_utf8(bytes);
            text.is_ok_and(|text| Netrc::parse(text).login("https://example.com/x").is_some())
        },
        seeds: || {
            texts(&[
                "machine example.com login u password \"p w\"\n# c\ndefault login d password e\n",
                "machine a\nmacdef init\n cd /\n\nmachine example.com password p",
            ])
        },
    },
    Target {
        name: "rollout-rows",
        about: "a table of counts to judge",
        run: rows,
        seeds: || {
            texts(&[
                "time,canary_total,canary_bad,stable_total,stable_bad\n0,100,1,900,1\n60,100,0,900,0\n",
                "stable_bad,time,canary_total,canary_bad,stable_total\n1,2026-11-17T00:00:00Z,18446744073709551615,5,6\n",
            ])
        },
    },
];

fn rows(bytes: &[u8]) -> bool {
    let Ok(table) = std::str::from_utf8(bytes) else {
        return false;
    };
    let plain = Settings::default();
    let corrected = Settings {
        corrections: Some(Corrections::default()),
        ..Settings::default()
    };
    let judged = [plain, corrected].map(|settings| {
        let Ok(judgement) = judge_rows(table, &settings) else {
            return false;
        };
        let mut rows = judgement.rows.iter();
        assert!(rows.all(|row| !row.ln_rollback.is_nan() && !row.ln_promote.is_nan()));
        true
    });
    judged == [true, true]
}
