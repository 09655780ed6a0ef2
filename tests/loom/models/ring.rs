//! Rings: a writer that found no room is rung when there is some, a reader that found nothing when something comes.

use antiphon_loom::message::{Envelope, Epoch, RingItem, UnitId};
use antiphon_loom::unit::{Consumer, Producer, Ringer, StageBell, ring};

use super::{explore, spawn};

const UNIT: UnitId = UnitId::new(0);
const EPOCH: Epoch = Epoch::new(1);

#[derive(Debug)]
struct Number(u8);

impl RingItem for Number {
    type Stamp = Epoch;
}

fn push(producer: &mut Producer<Number>, number: u8) {
    producer.push(EPOCH, Number(number)).expect("there is room");
}

fn pop(consumer: &mut Consumer<Number>) -> Option<u8> {
    consumer.pop().and_then(Envelope::into_item).map(|Number(number)| number)
}

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
            ring::<Number>(1, Ringer::Stage(for_room, UNIT), Ringer::Stage(for_items, UNIT));
        push(&mut producer, 1);
        let reader = spawn(move || {
            assert_eq!(pop(&mut consumer), Some(1));
            consumer
        });
        for_room.attend(0);
        while !producer.has_room_or_ring(1) {
            wait(for_room);
        }
        push(&mut producer, 2);
        assert_eq!(pop(&mut reader.join().unwrap()), Some(2));
    });
}

#[test]
fn a_writer_that_waits_for_half_a_ring_is_rung() {
    explore(|| {
        let (for_room, for_items) = (bell(), bell());
        let (mut producer, mut consumer) =
            ring::<Number>(3, Ringer::Stage(for_room, UNIT), Ringer::Stage(for_items, UNIT));
        (1..=3).for_each(|number| push(&mut producer, number));
        let reader = spawn(move || {
            assert_eq!((pop(&mut consumer), pop(&mut consumer)), (Some(1), Some(2)));
            consumer
        });
        for_room.attend(0);
        while !producer.has_room_or_ring(2) {
            wait(for_room);
        }
        push(&mut producer, 4);
        push(&mut producer, 5);
        let mut consumer = reader.join().unwrap();
        let rest = [pop(&mut consumer), pop(&mut consumer), pop(&mut consumer)];
        assert_eq!(rest, [Some(3), Some(4), Some(5)]);
    });
}

#[test]
fn a_reader_that_found_nothing_is_rung() {
    explore(|| {
        let (for_room, for_items) = (bell(), bell());
        let (mut producer, mut consumer) =
            ring::<Number>(1, Ringer::Stage(for_room, UNIT), Ringer::Stage(for_items, UNIT));
        let writer = spawn(move || producer.push_end(EPOCH));
        for_items.attend(0);
        let envelope = loop {
            match consumer.pop() {
                Some(envelope) => break envelope,
                None => wait(for_items),
            }
        };
        assert!(envelope.ends(EPOCH));
        writer.join().unwrap();
    });
}
