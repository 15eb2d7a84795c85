use super::*;
use bytes::Bytes;

fn members(count: u16) -> Vec<NodeId> {
    (1..=count).filter_map(NodeId::new).collect()
}

/// A burst of `count` datagrams of 48 bytes from node `sender`, numbered in their first byte.
fn burst(sender: u16, count: u8) -> Arrival {
    let mut bytes = Vec::new();
    for number in 0..count {
        let mut datagram = [number; 48];
        datagram[SENDER_AT..SENDER_AT + 2].copy_from_slice(&sender.to_le_bytes());
        bytes.extend_from_slice(&datagram);
    }
    Arrival {
        bytes: Bytes::from(bytes),
        segment: 48,
    }
}

fn numbers(arrivals: &VecDeque<Arrival>) -> Vec<u8> {
    arrivals
        .iter()
        .flat_map(|a| a.bytes.chunks(a.segment).map(|d| d[0]))
        .collect()
}

fn layer(config: FaultConfig) -> FaultLayer {
    let all = members(4);
    FaultLayer::new(FaultConfig { seed: 7, ..config }, all[2], &all)
}

fn pass(layer: &mut FaultLayer, class: Class, arrival: Arrival) -> VecDeque<Arrival> {
    let mut arrivals = VecDeque::new();
    layer.pass(Time(1000), class, arrival, &mut arrivals);
    arrivals
}

#[test]
fn without_faults_a_burst_passes_whole() {
    let arrivals = pass(&mut layer(FaultConfig::default()), Class::Data, burst(1, 9));
    assert_eq!(arrivals, [burst(1, 9)]);
}

#[test]
fn the_same_seed_loses_the_same_datagrams_and_about_as_many_as_asked() {
    let config = FaultConfig {
        loss: 0.25,
        ..FaultConfig::default()
    };
    let run = || {
        numbers(&pass(
            &mut layer(config.clone()),
            Class::Data,
            burst(1, 200),
        ))
    };
    assert_eq!(run(), run());
    assert!(
        (130..170).contains(&run().len()),
        "{} of 200 arrived",
        run().len()
    );
}

#[test]
fn loss_by_distance_spares_everybody_else() {
    let config = FaultConfig {
        loss: 1.0,
        loss_distance: Some(3),
        ..FaultConfig::default()
    };
    let mut layer = layer(config);
    // Three places before node 3 in a ring of four is node 4.
    assert_eq!(pass(&mut layer, Class::Data, burst(4, 5)), []);
    assert_eq!(pass(&mut layer, Class::Data, burst(2, 5)), [burst(2, 5)]);
    assert_eq!(layer.faults(), 5);
}

#[test]
fn tokens_are_spared_unless_included() {
    let config = FaultConfig {
        loss: 1.0,
        ..FaultConfig::default()
    };
    assert_eq!(
        pass(&mut layer(config.clone()), Class::Token, burst(1, 1)),
        [burst(1, 1)]
    );
    let config = FaultConfig {
        include_token: true,
        ..config
    };
    assert_eq!(pass(&mut layer(config), Class::Token, burst(1, 1)), []);
}

#[test]
fn delayed_datagrams_come_in_order_and_not_before_their_time() {
    let mut layer = layer(FaultConfig {
        delay_us: 50,
        ..FaultConfig::default()
    });
    assert_eq!(pass(&mut layer, Class::Data, burst(1, 3)), []);
    assert_eq!(layer.next_due(), Some(Time(51_000)));
    assert!(layer.take_due(Time(50_999)).is_none());
    let mut late = VecDeque::new();
    while let Some((class, arrival)) = layer.take_due(Time(51_000)) {
        assert_eq!(class, Class::Data);
        late.push_back(arrival);
    }
    assert_eq!(numbers(&late), [0, 1, 2]);
}

#[test]
fn a_duplicate_arrives_twice_and_a_reordered_datagram_later() {
    let mut twice = layer(FaultConfig {
        duplicate: 1.0,
        ..FaultConfig::default()
    });
    assert_eq!(numbers(&pass(&mut twice, Class::Data, burst(1, 2))), [0, 1]);
    assert_eq!(twice.late.len(), 2);
    let mut later = layer(FaultConfig {
        reorder: 1.0,
        ..FaultConfig::default()
    });
    assert_eq!(pass(&mut later, Class::Data, burst(1, 2)), []);
    assert_eq!(later.next_due(), Some(Time(1000 + REORDER_NANOS)));
}
