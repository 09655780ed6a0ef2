//! Rings: a writer that found no room is rung when there is some, a reader that found nothing when something comes.

use antiphon_loom::message::UnitId;
use antiphon_loom::unit::{Ringer, StageBell, ring};

use super::{explore, spawn};

const UNIT: UnitId = UnitId::new(0);

fn bell() -> &'static StageBell {
    Box::leak(Box::new(StageBell::new(1, 1)))
}

/// Sleeps until rung; the next look at the ring decides.
fn wait(bell: &StageBell) {
    let (mut cursor, mut out) = (0, [UNIT]);
    if bell.take(&mut cursor, &mut out) == 1 {
        bell.put_back(UNIT);
    } else {
        bell.sleep(0, None);
    }
}

#[test]
fn a_writer_that_waits_for_room_is_rung() {
    explore(|| {
        let (for_room, for_items) = (bell(), bell());
        let (mut producer, mut consumer) =
            ring::<u8>(1, Ringer::Stage(for_room, UNIT), Ringer::Stage(for_items, UNIT));
        producer.push(1).expect("room for one");
        let reader = spawn(move || {
            assert_eq!(consumer.pop(), Some(1));
            consumer
        });
        for_room.attend(0);
        while !producer.has_room_or_ring(1) {
            wait(for_room);
        }
        producer.push(2).expect("there is room");
        assert_eq!(reader.join().unwrap().pop(), Some(2));
    });
}

#[test]
fn a_writer_that_waits_for_half_a_ring_is_rung() {
    explore(|| {
        let (for_room, for_items) = (bell(), bell());
        let (mut producer, mut consumer) =
            ring::<u8>(3, Ringer::Stage(for_room, UNIT), Ringer::Stage(for_items, UNIT));
        (1..=3).for_each(|item| producer.push(item).expect("room for three"));
        let reader = spawn(move || {
            assert_eq!((consumer.pop(), consumer.pop()), (Some(1), Some(2)));
            consumer
        });
        for_room.attend(0);
        while !producer.has_room_or_ring(2) {
            wait(for_room);
        }
        producer.push(4).expect("there is room");
        producer.push(5).expect("there is room");
        let mut consumer = reader.join().unwrap();
        assert_eq!((consumer.pop(), consumer.pop(), consumer.pop()), (Some(3), Some(4), Some(5)));
    });
}

#[test]
fn a_reader_that_found_nothing_is_rung() {
    explore(|| {
        let (for_room, for_items) = (bell(), bell());
        let (mut producer, mut consumer) =
            ring::<u8>(1, Ringer::Stage(for_room, UNIT), Ringer::Stage(for_items, UNIT));
        let writer = spawn(move || producer.push_marker(1).expect("an empty ring"));
        for_items.attend(0);
        let item = loop {
            match consumer.pop() {
                Some(item) => break item,
                None => wait(for_items),
            }
        };
        assert_eq!(item, 1);
        writer.join().unwrap();
    });
}
