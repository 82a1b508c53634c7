//! The memory that the chart gives the services.

use serde_json::Value;

use super::Part;

const VALUES: &str = include_str!("../../../helm/values.yaml");

/// Returns the memory limit of a service, in MiB.
pub(crate) fn memory_limit(part: Part) -> u64 {
    let values: Value = serde_yaml_ng::from_str(VALUES).unwrap();
    let component = &values["components"][part.program()];
    assert!(component.is_object(), "{part:?} is no component");
    let limit = |of: &Value| {
        let limit = of["resources"]["limits"]["memory"].as_str()?;
        Some(limit.strip_suffix("Mi").unwrap().parse().unwrap())
    };
    limit(component)
        .or_else(|| limit(&values["defaults"]))
        .unwrap()
}
