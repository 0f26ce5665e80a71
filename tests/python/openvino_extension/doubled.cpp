// An operation that OpenVINO does not have: every number twice. The tests compile it, and name it in CPU_EXTENSION_PATH.
#include <openvino/core/extension.hpp>
#include <openvino/core/op_extension.hpp>
#include <openvino/op/op.hpp>

class Doubled : public ov::op::Op {
public:
    OPENVINO_OP("Doubled");
    Doubled() = default;
    explicit Doubled(const ov::Output<ov::Node>& of) : Op({of}) { constructor_validate_and_infer_types(); }
    void validate_and_infer_types() override { set_output_type(0, get_input_element_type(0), get_input_partial_shape(0)); }
    std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector& of) const override {
        return std::make_shared<Doubled>(of.at(0));
    }
    bool visit_attributes(ov::AttributeVisitor&) override { return true; }
    bool has_evaluate() const override { return true; }
    bool evaluate(ov::TensorVector& to, const ov::TensorVector& from) const override {
        to[0].set_shape(from[0].get_shape());
        for (size_t i = 0; i < from[0].get_size(); i++) to[0].data<float>()[i] = 2 * from[0].data<float>()[i];
        return true;
    }
};

OPENVINO_CREATE_EXTENSIONS(std::vector<ov::Extension::Ptr>({std::make_shared<ov::OpExtension<Doubled>>()}));
