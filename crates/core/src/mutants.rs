//! Deliberately broken versions of the protocol, to show that the checks catch them.
//!
//! In builds without the feature `mutants` [`on`] is always false and costs nothing. With it, one
//! mutant at a time is switched on for the whole process.

use core::sync::atomic::{AtomicU16, Ordering};

/// One way to be wrong. `docs/verification.md` says of each what it breaks and what catches it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs, reason = "each is described where it is used")]
#[rustfmt::skip]
pub enum Mutant {
    M01 = 1, M02, M03, M04, M05, M06, M07, M08, M09, M10, M11, M12, M13, M14, M15, M16, M17, M18,
    M19, M20, M21, M22, M23, M24, M25, M26, M27, M28, M29, M30, M31, M33, M34, M36, M37,
    R01, R02, R03, R04, R05, R06, R07, R08, R09, R10,
    P01, P02, P03, P04, P05, G01, G02, G03, G04, G05, G06, G07, G08, G09,
    G10, G11, G12, G13, G14, G15, G16, G17, G18, G19, G20, G21,
    G22, G23, G24, G25, G26, G27, G28, G29, G30, G31, G32,
    V01, V02, V03, V04, V05, V06, V07, V08, V09, V10, V11, V12, V13, V14, V15,
        B01, B02, B03, B04, B05, B06,
        M38, F01, F02, F03, F04, F05, F06, F07, F08, F09, F10,
        L01, L02, L03, L04, L05, L06, L07, L08, L09, L10,
        M40, M41, M42, M43, M44, M45, M46, M47, M48, M49, M50, M51, M52, M53, M54, M55, M56, M57, M58, M59, M60, M61, M62, M63, N01, N02, N03, N04, N05, N06, N07, N08, N09, N10, N11, N12, N13, N14, N15, N16,
    N17, N18, N19, N20, N21, N22, N23, N24, N25, N26,
    U01, U02, U03, U04, U05, U06, U07, U08, U09, U10, U11, U12, U13, U14,
    U15, U16, U17, U18, U19, U20, U21, U22, U23, U24, U26, U27, U28, U29, U30, U31, U32, U33, U34,
    U35, U36, U37, U38, U39, U40, U41, U42, U43, U44, U45, U46, U47, U48, U49, U50, U51, U52, U53, U54, U55,
    U56, U57, U58, U59, U60, U61, U62, U63, U64, U65, U66, U67, U68, U69, U70,
    U71, U72, U73, U74, U75, U76, U77, U78, U79, U80, U81, U82, U83, U84, U85, U86, U87, U88, U89, U90, U91, U92, U93, U94, U95, U96, U97, U98, U99, U100, U101, U102, U103, U104, U105, U106, U107,
    U108, U109, U110, U111, U112, U113, U114, U115, U116, U117, U118, U119, U120, U121, U122, U123, U124,
    U125, U126, U127, U128, U129, U130, U131, U132, U133, U134, U135, U136, U137, U138, U139,
    U150, U151, U152, U153, U154, U155, U156, U157, U158, U159, U160, U161, U162,
    I01, I02, I03, I04, I05, I06, I07, I08, I09, I10, I11, I12, I13, I14, I15,
}

impl Mutant {
    /// All of them.
    #[rustfmt::skip]
    pub const ALL: [Self; 340] = [
        Self::M01, Self::M02, Self::M03, Self::M04, Self::M05, Self::M06, Self::M07, Self::M08,
        Self::M09, Self::M10, Self::M11, Self::M12, Self::M13, Self::M14, Self::M15, Self::M16,
        Self::M17, Self::M18, Self::M19, Self::M20, Self::M21, Self::M22, Self::M23, Self::M24,
        Self::M25, Self::M26, Self::M27, Self::M28, Self::M29, Self::M30, Self::M31, Self::M33,
        Self::M34, Self::M36, Self::M37, Self::R01, Self::R02, Self::R03, Self::R04, Self::R05, Self::R06, Self::R07,
        Self::R08, Self::R09, Self::R10, Self::P01, Self::P02, Self::P03, Self::P04, Self::P05, Self::G01,
        Self::G02, Self::G03, Self::G04, Self::G05, Self::G06, Self::G07, Self::G08, Self::G09,
        Self::G10, Self::G11, Self::G12, Self::G13, Self::G14, Self::G15, Self::G16,
        Self::G17, Self::G18, Self::G19, Self::G20,
        Self::G21, Self::G22, Self::G23, Self::G24, Self::G25, Self::G26, Self::G27, Self::G28, Self::G29, Self::G30,
        Self::G31, Self::G32,
        Self::V01, Self::V02, Self::V03, Self::V04, Self::V05, Self::V06, Self::V07, Self::V08,
        Self::V09, Self::V10, Self::V11, Self::V12, Self::V13, Self::V14, Self::V15,
        Self::B01, Self::B02, Self::B03, Self::B04, Self::B05, Self::B06,
        Self::M38, Self::F01, Self::F02, Self::F03, Self::F04, Self::F05,
        Self::F06, Self::F07, Self::F08, Self::F09, Self::F10,
        Self::L01, Self::L02, Self::L03, Self::L04, Self::L05, Self::L06, Self::L07, Self::L08, Self::L09, Self::L10,
        Self::M40, Self::M41, Self::M42, Self::M43, Self::M44, Self::M45, Self::M46, Self::M47, Self::M48, Self::M49, Self::M50, Self::M51, Self::M52, Self::M53, Self::M54, Self::M55, Self::M56, Self::M57, Self::M58, Self::M59, Self::M60, Self::M61, Self::M62, Self::M63, Self::N01, Self::N02, Self::N03, Self::N04, Self::N05, Self::N06, Self::N07, Self::N08, Self::N09,
        Self::N10, Self::N11, Self::N12, Self::N13, Self::N14, Self::N15, Self::N16,
        Self::N17, Self::N18, Self::N19, Self::N20, Self::N21, Self::N22, Self::N23, Self::N24, Self::N25, Self::N26,
        Self::U01, Self::U02, Self::U03, Self::U04, Self::U05, Self::U06, Self::U07, Self::U08, Self::U09,
        Self::U10, Self::U11, Self::U12, Self::U13, Self::U14, Self::U15, Self::U16, Self::U17, Self::U18,
        Self::U19, Self::U20, Self::U21, Self::U22, Self::U23, Self::U24, Self::U26, Self::U27,
        Self::U28, Self::U29, Self::U30, Self::U31, Self::U32, Self::U33, Self::U34,
        Self::U35, Self::U36, Self::U37, Self::U38, Self::U39, Self::U40, Self::U41,
        Self::U42, Self::U43, Self::U44, Self::U45, Self::U46, Self::U47, Self::U48, Self::U49, Self::U50, Self::U51,
        Self::U52, Self::U53, Self::U54, Self::U55, Self::U56, Self::U57, Self::U58, Self::U59, Self::U60, Self::U61,
        Self::U62, Self::U63, Self::U64, Self::U65, Self::U66, Self::U67, Self::U68, Self::U69, Self::U70,
        Self::U71, Self::U72, Self::U73, Self::U74, Self::U75, Self::U76, Self::U77, Self::U78, Self::U79, Self::U80, Self::U81, Self::U82, Self::U83, Self::U84, Self::U85, Self::U86, Self::U87, Self::U88,
        Self::U89, Self::U90, Self::U91, Self::U92, Self::U93, Self::U94, Self::U95, Self::U96, Self::U97, Self::U98, Self::U99, Self::U100, Self::U101, Self::U102, Self::U103, Self::U104, Self::U105, Self::U106, Self::U107,
        Self::U108, Self::U109, Self::U110, Self::U111, Self::U112, Self::U113, Self::U114, Self::U115, Self::U116, Self::U117, Self::U118, Self::U119, Self::U120, Self::U121, Self::U122, Self::U123, Self::U124,
        Self::U125, Self::U126, Self::U127, Self::U128, Self::U129, Self::U130, Self::U131, Self::U132, Self::U133, Self::U134, Self::U135, Self::U136, Self::U137, Self::U138, Self::U139,
        Self::U150, Self::U151, Self::U152, Self::U153, Self::U154, Self::U155, Self::U156, Self::U157, Self::U158, Self::U159, Self::U160, Self::U161, Self::U162,
        Self::I01, Self::I02, Self::I03, Self::I04, Self::I05, Self::I06, Self::I07, Self::I08, Self::I09, Self::I10,
        Self::I11, Self::I12, Self::I13, Self::I14, Self::I15,
    ];
}

impl core::fmt::Display for Mutant {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Debug::fmt(self, f)
    }
}

/// The switch of a set of broken versions, of which one at most is on in the whole process.
#[derive(Debug)]
pub struct Switch(AtomicU16);

impl Switch {
    /// A switch with no version on.
    pub const fn off() -> Self {
        Self(AtomicU16::new(0))
    }

    /// Breaks something in one way, or, with `None`, mends it.
    pub fn set(&self, number: Option<u16>) {
        let number = number.map_or(0, |number| number + 1);
        self.0.store(number, Ordering::Relaxed);
    }

    /// Whether any version is on.
    pub fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// Whether this version is on.
    #[inline]
    pub fn is(&self, number: u16) -> bool {
        self.0.load(Ordering::Relaxed) == number + 1
    }
}

#[cfg(feature = "mutants")]
mod switch {
    use core::sync::atomic::{AtomicBool, Ordering};

    use super::{Mutant, Switch};

    static ON: Switch = Switch::off();
    static CHECKS: AtomicBool = AtomicBool::new(false);

    /// Has machines check themselves though a mutant is on, to show what their invariants find.
    pub fn keep_checks(keep: bool) {
        CHECKS.store(keep, Ordering::Relaxed);
    }

    /// Whether machines check themselves though a mutant is on.
    pub fn keeps_checks() -> bool {
        CHECKS.load(Ordering::Relaxed)
    }

    /// Breaks the protocol in one way, or, with `None`, mends it.
    pub fn set(mutant: Option<Mutant>) {
        ON.set(mutant.map(|mutant| mutant as u16));
    }

    /// Whether any mutant is on.
    pub fn any() -> bool {
        ON.any()
    }

    /// Whether this mutant is switched on.
    #[inline]
    pub fn on(mutant: Mutant) -> bool {
        ON.is(mutant as u16)
    }
}

#[cfg(feature = "mutants")]
pub use switch::{any, keep_checks, keeps_checks, on, set};

/// Whether machines check themselves though a mutant is on: none is, in this build.
#[cfg(not(feature = "mutants"))]
#[inline]
pub const fn keeps_checks() -> bool {
    false
}

/// Whether any mutant is on: never, in this build.
#[cfg(not(feature = "mutants"))]
#[inline]
pub const fn any() -> bool {
    false
}

/// Whether this mutant is switched on: never, in this build.
#[cfg(not(feature = "mutants"))]
#[inline]
pub const fn on(_: Mutant) -> bool {
    false
}
