//! Rings with the layer that says which configurations are primary.

use rota_sim::campaign::{self, EngineName, Options, PrimaryChoice};

#[test]
fn there_is_one_primary_under_all_faults_and_one_at_rest() {
    for primary in [PrimaryChoice::Static, PrimaryChoice::Dynamic] {
        let mut options = Options::new(EngineName::AcceleratedRing, 0..40);
        options.primary = primary;
        let report = campaign::run(&options).expect("nothing is written");
        assert_eq!(report.violations, [], "{primary:?}");
        for property in ["P1", "P2", "P3"] {
            assert!(report.coverage[property] > 0, "{property}, {primary:?}");
        }
    }
}
