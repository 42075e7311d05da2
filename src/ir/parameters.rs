//! The parameters of a host driver: what a launch is given.

use super::program::{Param, TensorDef};
use super::{DType, Direction, Extent, Program, ScalarType};

/// A parameter of the host driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name; `#` and its number if it has none.
    pub name: String,
    /// What is passed for it.
    pub kind: ParameterKind,
}

/// What is passed for a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// A tensor.
    Tensor {
        /// Element type.
        dtype: DType,
        /// What is done with it.
        direction: Direction,
        /// Every rank has a part of it.
        sliced: bool,
        /// Its extents; of one that is sliced, those of a part.
        shape: Vec<Extent>,
    },
    /// A scalar.
    Scalar(ScalarType),
}

impl Program {
    /// The parameters of the host driver, in order.
    pub fn parameters(&self) -> Vec<Parameter> {
        let Some(host) = &self.host else { return Vec::new() };
        let parameter = |(index, param): (usize, &Param)| {
            let (name, kind) = match *param {
                Param::Scalar(scalar) => {
                    let data = &self.scalars[scalar];
                    (&data.name, ParameterKind::Scalar(data.ty))
                }
                Param::Tensor(tensor) => {
                    let (data, sliced) = (&self.tensors[tensor], self.is_sliced(tensor));
                    let TensorDef::HostParam(_, direction) = data.def else {
                        unreachable!("{:?} is no parameter of a host driver", data.def)
                    };
                    let shape = data.shape.iter().skip(sliced.into()).copied().collect();
                    (&data.name, ParameterKind::Tensor { dtype: data.dtype, direction, sliced, shape })
                }
            };
            Parameter { name: name.clone().unwrap_or_else(|| format!("#{index}")), kind }
        };
        host.params.iter().enumerate().map(parameter).collect()
    }
}
