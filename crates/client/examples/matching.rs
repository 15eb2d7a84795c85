//! A matching engine with replay: `cargo run --example matching -- ADDRESS NAME GROUP COPIES JOURNAL`, `COPIES` times.
//!
//! Commands are `buy QUANTITY PRICE`, `sell QUANTITY PRICE`, `cancel ORDER`; the answer is the order's number and its trades. The best
//! price goes first, at one price the earliest order. All copies match the same orders in the same order; one that starts again
//! replays its journal, and gets what it has missed. `Matching` of `clients/java/examples` is another copy of the same.

#[allow(clippy::duplicate_mod, reason = "a test has all three examples")]
mod replicated;

use std::error::Error;
use std::fmt::Write as _;

use replicated::{Machine, Standing};

/// An order that waits.
#[derive(Clone)]
struct Order {
    number: u64,
    owner: String,
    quantity: u64,
    price: u64,
}

#[derive(Default)]
struct Book {
    newest: u64,
    /// What was traded so far.
    traded: u64,
    /// The best first.
    buys: Vec<Order>,
    sells: Vec<Order>,
}

impl Book {
    fn place(&mut self, buys: bool, owner: &str, quantity: u64, price: u64) -> String {
        self.newest += 1;
        let mut answer = self.newest.to_string();
        let mut left = quantity;
        let others = if buys {
            &mut self.sells
        } else {
            &mut self.buys
        };
        while left > 0
            && let Some(best) = others.first_mut()
            && (if buys {
                best.price <= price
            } else {
                best.price >= price
            })
        {
            let traded = left.min(best.quantity);
            // A string takes it.
            let _ = write!(answer, " {traded}@{} of {}", best.price, best.number);
            left -= traded;
            best.quantity -= traded;
            self.traded += traded;
            if best.quantity == 0 {
                others.remove(0);
            }
        }
        if left > 0 {
            let own = if buys {
                &mut self.buys
            } else {
                &mut self.sells
            };
            let is_behind = |other: &Order| {
                if buys {
                    other.price < price
                } else {
                    other.price > price
                }
            };
            let at = own.iter().position(is_behind).unwrap_or(own.len());
            let order = Order {
                number: self.newest,
                owner: owner.to_owned(),
                quantity: left,
                price,
            };
            own.insert(at, order);
        }
        answer
    }

    fn cancel(&mut self, owner: &str, number: u64) -> String {
        let before = self.buys.len() + self.sells.len();
        let stays = |order: &Order| order.number != number || order.owner != owner;
        self.buys.retain(stays);
        self.sells.retain(stays);
        let gone = before - self.buys.len() - self.sells.len();
        gone.to_string()
    }
}

impl Machine for Book {
    fn apply(&mut self, sender: &str, command: &str) -> String {
        let words: Vec<&str> = command.split(' ').collect();
        let number = |text: &str| text.parse::<u64>().unwrap_or_default();
        match words[..] {
            [side @ ("buy" | "sell"), quantity, price] => {
                self.place(side == "buy", sender, number(quantity), number(price))
            }
            ["cancel", order] => self.cancel(sender, number(order)),
            _ => "what?".to_owned(),
        }
    }

    fn members(&mut self, _: &[String]) {}

    fn write(&self) -> String {
        let mut text = format!("{} {}\n", self.newest, self.traded);
        for (side, orders) in [("buy", &self.buys), ("sell", &self.sells)] {
            for order in orders {
                let Order {
                    number,
                    owner,
                    quantity,
                    price,
                } = order;
                let _ = writeln!(text, "{side} {number} {owner} {quantity} {price}");
            }
        }
        text
    }

    fn read(&mut self, text: &str) {
        *self = Self::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |text: &str| text.parse::<u64>().unwrap_or_default();
            match words[..] {
                [newest, traded] => (self.newest, self.traded) = (number(newest), number(traded)),
                [side, order, owner, quantity, price] => {
                    let order = Order {
                        number: number(order),
                        owner: owner.to_owned(),
                        quantity: number(quantity),
                        price: number(price),
                    };
                    let orders = if side == "buy" {
                        &mut self.buys
                    } else {
                        &mut self.sells
                    };
                    orders.push(order);
                }
                _ => {}
            }
        }
    }

    fn look(&mut self, _: &str, _: Standing) -> Option<String> {
        None
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    run(&std::env::args().skip(1).collect::<Vec<String>>())
}

/// One copy, until its input ends.
pub fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    replicated::run::<Book>(arguments)
}
