/// @file tile.hpp
/// Tiles: loads, stores, and arithmetic on all elements at once.
#ifndef PLD_TILE_HPP
#define PLD_TILE_HPP

#include <pld.h>
#include <pld/location.hpp>
#include <pld/scalar.hpp>
#include <pld/shape.hpp>
#include <pld/tensor.hpp>

#include <string>

namespace pld {

class TileOperand;

/// A register of a task, whose shape is known when the program is compiled. What returns a tile makes a new one; the
/// assignments of this class overwrite it, as the program runs. Copies of the C++ value name the same tile.
///
/// Operators take tiles of the same shape and element type, or a tile and a scalar, with the meaning of `pld_tile_add`
/// and its neighbours: integers wrap, F16 and BF16 compute in F32 and round. C++ leaves open which operand is made
/// first: name two loads before adding them, if the program's text is to be the same with every compiler.
class Tile {
 public:
  /// No tile.
  Tile() noexcept = default;
  /// A tile of the C interface, of this program, made at this line. Without a program it is none.
  Tile(pld_program_t *program, pld_tile_t raw, Location at) noexcept : program_(program), at_(at) {
    if (program != nullptr) raw_ = raw;
  }
  /// The same tile.
  Tile(const Tile &) noexcept = default;

  /// Overwrites it by a new tile: `acc = acc + x`.
  void operator=(Tile &&value) noexcept { overwrite(value, value.at_); }
  /// Overwrites it by one that has a name of its own: see `assign`, which knows the line.
  void operator=(const Tile &value) = delete;
  /// Adds another one in place.
  inline void operator+=(TileOperand b);
  /// Subtracts another one in place.
  inline void operator-=(TileOperand b);
  /// Multiplies by another one in place.
  inline void operator*=(TileOperand b);
  /// Divides by another one in place.
  inline void operator/=(TileOperand b);
  /// Adds a scalar in place.
  inline void operator+=(Operand b);
  /// Subtracts a scalar in place.
  inline void operator-=(Operand b);
  /// Multiplies by a scalar in place.
  inline void operator*=(Operand b);
  /// Divides by a scalar in place.
  inline void operator/=(Operand b);

  /// The program; nullptr of no tile.
  pld_program_t *program() const noexcept { return program_; }
  /// The tile as the C interface has it.
  pld_tile_t capi() const noexcept { return raw_; }

 private:
  friend void assign(Tile &tile, const Tile &value, Location at);

  void overwrite(const Tile &value, Location at) noexcept {
    (pld_tile_assign)(detail::at(program_, at), raw_, value.raw_);
  }

  pld_program_t *program_ = nullptr;
  pld_tile_t raw_ = {0};
  Location at_;
};

/// A tile as an operand, with the line that it stands on. It is a parameter type only.
class TileOperand {
 public:
  /// A tile.
  TileOperand(const Tile &tile, Location at = Location::here()) noexcept
      : program_(tile.program()), raw_(tile.capi()), at_(at) {}

  /// The program.
  pld_program_t *program() const noexcept { return program_; }
  /// The tile as the C interface has it.
  pld_tile_t capi() const noexcept { return raw_; }
  /// Where it stands.
  Location location() const noexcept { return at_; }

 private:
  pld_program_t *program_;
  pld_tile_t raw_;
  Location at_;
};

/// Overwrites a tile by another one of the same shape and element type.
inline void assign(Tile &tile, const Tile &value, Location at = Location::here()) { tile.overwrite(value, at); }

namespace detail {

using TileUnary = pld_tile_t (*)(pld_program_t *, pld_tile_t);
using TileBinary = pld_tile_t (*)(pld_program_t *, pld_tile_t, pld_tile_t);
using TileScalar = pld_tile_t (*)(pld_program_t *, pld_tile_t, pld_scalar_t);

inline Tile tile(TileUnary op, const TileOperand &a) noexcept {
  return Tile(a.program(), op(at(a.program(), a.location()), a.capi()), a.location());
}

inline Tile tile(TileBinary op, const TileOperand &a, const TileOperand &b) noexcept {
  return Tile(a.program(), op(at(a.program(), a.location()), a.capi(), b.capi()), a.location());
}

inline Tile tile(TileScalar op, const TileOperand &a, const Operand &b) noexcept {
  const pld_scalar_t x = b.in(a.program());
  return Tile(a.program(), op(at(a.program(), a.location()), a.capi(), x), a.location());
}

}  // namespace detail

/// The elementwise sum.
inline Tile operator+(TileOperand a, TileOperand b) { return detail::tile(pld_tile_add, a, b); }
/// The elementwise difference.
inline Tile operator-(TileOperand a, TileOperand b) { return detail::tile(pld_tile_sub, a, b); }
/// The elementwise product.
inline Tile operator*(TileOperand a, TileOperand b) { return detail::tile(pld_tile_mul, a, b); }
/// The elementwise quotient; see `pld_tile_div`.
inline Tile operator/(TileOperand a, TileOperand b) { return detail::tile(pld_tile_div, a, b); }
/// The elementwise larger one; NaN if one is NaN.
inline Tile max(TileOperand a, TileOperand b) { return detail::tile(pld_tile_max, a, b); }
/// The elementwise smaller one; NaN if one is NaN.
inline Tile min(TileOperand a, TileOperand b) { return detail::tile(pld_tile_min, a, b); }

/// Every element plus a scalar.
inline Tile operator+(TileOperand a, Operand b) { return detail::tile(pld_tile_adds, a, b); }
/// Every element minus a scalar.
inline Tile operator-(TileOperand a, Operand b) { return detail::tile(pld_tile_subs, a, b); }
/// Every element times a scalar.
inline Tile operator*(TileOperand a, Operand b) { return detail::tile(pld_tile_muls, a, b); }
/// Every element divided by a scalar; see `pld_tile_div`.
inline Tile operator/(TileOperand a, Operand b) { return detail::tile(pld_tile_divs, a, b); }
/// The larger of every element and a scalar; NaN if one is NaN.
inline Tile max(TileOperand a, Operand b) { return detail::tile(pld_tile_maxs, a, b); }
/// The smaller of every element and a scalar; NaN if one is NaN.
inline Tile min(TileOperand a, Operand b) { return detail::tile(pld_tile_mins, a, b); }

inline void Tile::operator+=(TileOperand b) { overwrite(TileOperand(*this, b.location()) + b, b.location()); }
inline void Tile::operator-=(TileOperand b) { overwrite(TileOperand(*this, b.location()) - b, b.location()); }
inline void Tile::operator*=(TileOperand b) { overwrite(TileOperand(*this, b.location()) * b, b.location()); }
inline void Tile::operator/=(TileOperand b) { overwrite(TileOperand(*this, b.location()) / b, b.location()); }
inline void Tile::operator+=(Operand b) { overwrite(TileOperand(*this, b.location()) + b, b.location()); }
inline void Tile::operator-=(Operand b) { overwrite(TileOperand(*this, b.location()) - b, b.location()); }
inline void Tile::operator*=(Operand b) { overwrite(TileOperand(*this, b.location()) * b, b.location()); }
inline void Tile::operator/=(Operand b) { overwrite(TileOperand(*this, b.location()) / b, b.location()); }

/// The sum of each row: `[r, c]` becomes `[r, 1]`. F16 and BF16 add up in F32.
inline Tile row_sum(TileOperand tile) { return detail::tile(pld_tile_row_sum, tile); }
/// The maximum of each row: `[r, c]` becomes `[r, 1]`.
inline Tile row_max(TileOperand tile) { return detail::tile(pld_tile_row_max, tile); }
/// The sum of each column: `[r, c]` becomes `[1, c]`. F16 and BF16 add up in F32.
inline Tile col_sum(TileOperand tile) { return detail::tile(pld_tile_col_sum, tile); }
/// The maximum of each column: `[r, c]` becomes `[1, c]`.
inline Tile col_max(TileOperand tile) { return detail::tile(pld_tile_col_max, tile); }

/// A new tile with the same elements.
inline Tile copy(TileOperand tile) { return detail::tile(pld_tile_copy, tile); }

/// The tile in another element type. Floats round to nearest even; floats to integers truncate and saturate.
inline Tile cast(TileOperand tile, DType dtype) {
  pld_program_t *p = tile.program();
  return Tile(p, (pld_tile_cast)(detail::at(p, tile.location()), tile.capi(), capi(dtype)), tile.location());
}

/// A tile of one value. Inside a task.
inline Tile full(DType dtype, Shape shape, Operand value, Location at = Location::here()) {
  pld_program_t *p = detail::or_open(value.program());
  const pld_scalar_t x = value.in(p);
  return Tile(p, (pld_tile_full)(detail::at(p, at), capi(dtype), shape.data(), shape.size(), x), at);
}

/// The part of a tensor that begins at a place and has this shape, in elements, as a tile; see `pld_load`.
inline Tile load(const Place &from, Shape shape, Location at = Location::here()) {
  pld_program_t *p = from.program();
  const Offsets &o = from.offsets();
  return Tile(p, (pld_load)(detail::at(p, at), from.tensor().capi(), o.data(), o.size(), shape.data(), shape.size()),
              at);
}

/// The same, with the offsets in braces: `load(x, {0, 0}, {1, 256})`.
inline Tile load(const Tensor &tensor, Offsets offsets, Shape shape, Location at = Location::here()) {
  return load(Place(tensor, offsets), shape, at);
}

/// Writes a tile into a tensor of this rank, also a window, beginning at a place; see `pld_store`.
inline void store(const Tile &tile, const Place &to, Location at = Location::here()) {
  pld_program_t *p = to.program();
  const Offsets &o = to.offsets();
  (pld_store)(detail::at(p, at), tile.capi(), to.tensor().capi(), o.data(), o.size());
}

/// The same, with the offsets in braces: `store(acc, out, {0, 0})`.
inline void store(const Tile &tile, const Tensor &tensor, Offsets offsets, Location at = Location::here()) {
  store(tile, Place(tensor, offsets), at);
}

/// The tile under a name, which the program's text and all messages show.
inline Tile let(const std::string &name, const Tile &tile, Location at = Location::here()) {
  (pld_tile_name)(detail::at(tile.program(), at), tile.capi(), name.c_str());
  return tile;
}

}  // namespace pld

#endif
