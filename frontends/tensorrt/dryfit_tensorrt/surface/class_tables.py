"""TensorRT's classes: members in 8.6.1, 10.16 and 11.1.

One class a paragraph: `NAME: VERSIONS`, then the members by the versions that have them. ` ro` marks a property that
can only be read, parentheses a method with its parameters; `?` after a parameter marks one that may be left out. A
method stands once for each overload. Every other member is a property that can be read and written.
Source: TensorRT's open binding sources, tags v8.6.1, v10.16 and v11.1.
"""

CLASSES = """
Builder: 8 10 11
    all: __init__(logger); create_network(flags = 0U); max_DLA_batch_size ro; num_DLA_cores ro; gpu_allocator;
        create_optimization_profile(); error_recorder; create_builder_config(); build_serialized_network(network,
        config); is_network_supported(network, config); logger ro; max_threads; reset(); get_plugin_registry()
    8 10: platform_has_tf32 ro; platform_has_fast_fp16 ro; platform_has_fast_int8 ro
    8: max_batch_size; build_engine(network, config)
    10 11: build_serialized_network(network, config, kernel_text); build_serialized_network_to_stream(network, config,
        writer); build_engine_with_config(network, config)
Dims: 8 10 11
    all: __init__(); __init__(shape); MAX_DIMS ro; __len__(); __getitem__(); __setitem__()
Dims2: 8 10 11
    all: __init__(); __init__(dim0, dim1); __init__(shape)
Dims3: 8 10 11
    all: __init__(); __init__(dim0, dim1, dim2); __init__(shape)
Dims4: 8 10 11
    all: __init__(); __init__(dim0, dim1, dim2, dim3); __init__(shape)
DimsExprs: 10 11
    10 11: __init__(); __len__(); __getitem__(); __setitem__()
DimsHW: 8 10 11
    all: __init__(); __init__(h, w); __init__(shape); h; w
DynamicPluginTensorDesc: 10 11
    10 11: __init__(); desc; min; opt; max
EngineInspector: 8 10 11
    all: execution_context; get_layer_information(layer_index, format); get_engine_information(format); error_recorder
IActivationLayer: 8 10 11
    all: type; alpha; beta
IAlgorithm: 8 10
    8 10: get_algorithm_io_info(index); algorithm_variant ro; timing_msec ro; workspace_size ro
IAlgorithmContext: 8 10
    8 10: name ro; get_shape(index); num_inputs ro; num_outputs ro
IAlgorithmIOInfo: 8 10
    8 10: dtype ro; strides ro; vectorized_dim ro; components_per_element ro
    8: tensor_format ro
IAlgorithmSelector: 8 10
    8 10: __init__(); select_algorithms(context, choices); report_algorithms(contexts, choices)
IAlgorithmVariant: 8 10
    8 10: implementation ro; tactic ro
IAssertionLayer: 8 10 11
    all: message
IAttention: 10 11
    10 11: mask; norm_op; decomposable; causal; name; metadata; normalization_quantize_scale;
        normalization_quantize_to_type; num_inputs ro; num_outputs ro; set_input(index, tensor); get_input(index);
        get_output(index); num_ranks
    11: causal_kind; query_form; key_value_form; query_lengths; key_value_lengths
IAttentionBoundaryLayer: 10 11
    10 11: attention ro
IAttentionInputLayer: 10 11
IAttentionOutputLayer: 10 11
IBuilderConfig: 8 10 11
    all: avg_timing_iterations; engine_capability; set_memory_pool_limit(pool, pool_size);
        get_memory_pool_limit(pool); flags; default_device_type; DLA_core; clear_flag(flag); set_flag(flag);
        get_flag(flag); reset(); profile_stream; add_optimization_profile(profile); num_optimization_profiles ro;
        set_device_type(layer, device_type); get_device_type(layer); is_device_type_set(layer);
        reset_device_type(layer); can_run_on_DLA(layer); profiling_verbosity; set_tactic_sources(tactic_sources);
        get_tactic_sources(); create_timing_cache(serialized_timing_cache); set_timing_cache(cache, ignore_mismatch);
        get_timing_cache(); set_preview_feature(feature, enable); get_preview_feature(feature);
        builder_optimization_level; hardware_compatibility_level; plugins_to_serialize; max_aux_streams
    8 10: int8_calibrator; quantization_flags; clear_quantization_flag(flag); set_quantization_flag(flag);
        get_quantization_flag(flag); set_calibration_profile(profile); get_calibration_profile(); algorithm_selector
    8: min_timing_iterations; max_workspace_size
    10 11: max_num_tactics; runtime_platform; progress_monitor; tiling_optimization_level; l2_limit_for_tiling;
        remote_auto_tuning_config
    11: build_route; all_build_routes ro
ICastLayer: 8 10 11
    all: to_type
IConcatenationLayer: 8 10 11
    all: axis
IConditionLayer: 8 10 11
IConstantLayer: 8 10 11
    all: weights; shape
IConvolutionLayer: 8 10 11
    all: num_output_maps; pre_padding; post_padding; padding_mode; num_groups; kernel; bias; kernel_size_nd;
        stride_nd; padding_nd; dilation_nd
    8: kernel_size; stride; padding; dilation
ICudaEngine: 8 10 11
    all: __getitem__(); num_layers ro; serialize(); create_execution_context(); refittable ro; name ro;
        num_optimization_profiles ro; engine_capability ro; num_io_tensors ro; get_tensor_name(index);
        get_tensor_mode(name); is_shape_inference_io(name); get_tensor_shape(name); get_tensor_dtype(name);
        get_tensor_location(name); get_tensor_bytes_per_component(name); get_tensor_bytes_per_component(name,
        profile_index); get_tensor_components_per_element(name); get_tensor_components_per_element(name,
        profile_index); get_tensor_format(name); get_tensor_format(name, profile_index); get_tensor_format_desc(name);
        get_tensor_format_desc(name, profile_index); get_tensor_vectorized_dim(name); get_tensor_vectorized_dim(name,
        profile_index); get_tensor_profile_shape(name, profile_index); error_recorder; tactic_sources ro;
        profiling_verbosity ro; create_engine_inspector(); hardware_compatibility_level ro; num_aux_streams ro
    8 10: has_implicit_batch_dimension ro; create_execution_context_without_device_memory(); device_memory_size ro
    8: num_bindings ro; __len__(); get_binding_name(index); get_binding_index(name); binding_is_input(index);
        binding_is_input(name); get_binding_shape(index); get_binding_shape(name); get_binding_dtype(index);
        get_binding_dtype(name); max_batch_size ro; get_location(index); get_location(name);
        get_profile_shape(profile_index, binding); get_profile_shape_input(profile_index, binding);
        is_shape_binding(binding); is_execution_binding(binding); get_binding_bytes_per_component(index);
        get_binding_components_per_element(index); get_binding_format(index); get_binding_format_desc(index);
        get_binding_vectorized_dim(index)
    10 11: create_serialization_config(); serialize_with_config();
        get_device_memory_size_for_profile_v2(profile_index); device_memory_size_v2 ro;
        get_tensor_profile_values(name, profile_index); get_aliased_input_tensor(name); weight_streaming_budget_v2;
        streamable_weights_size ro; get_weight_streaming_automatic_budget(); weight_streaming_scratch_memory_size ro;
        is_debug_tensor(name); create_runtime_config(); get_engine_stat()
    10: get_device_memory_size_for_profile(profile_index); weight_streaming_budget; minimum_weight_streaming_budget ro
ICumulativeLayer: 10 11
    10 11: op; exclusive; reverse
IDebugListener: 10 11
    10 11: __init__(); process_debug_tensor(addr, location, type, shape, name, stream)
IDeconvolutionLayer: 8 10 11
    all: num_output_maps; pre_padding; post_padding; padding_mode; num_groups; kernel; bias; kernel_size_nd;
        stride_nd; padding_nd; dilation_nd
    8: kernel_size; stride; padding
IDequantizeLayer: 8 10 11
    all: axis
    10 11: block_shape; to_type
IDimensionExpr: 10 11
    10 11: is_constant(); get_constant_value(); is_size_tensor()
IDistCollectiveLayer: 10 11
IDynamicQuantizeLayer: 10 11
    10 11: axis; block_size; block_shape; to_type; scale_type
IEinsumLayer: 8 10 11
    all: equation
IElementWiseLayer: 8 10 11
    all: op
IErrorRecorder: 8 10 11
    all: __init__(); MAX_DESC_LENGTH ro; num_errors(); get_error_code(); get_error_desc(); has_overflowed(); clear();
        report_error()
IExecutionContext: 8 10 11
    all: execute_v2(bindings); debug_sync; profiler; engine ro; name; device_memory; get_tensor_strides(name);
        set_input_shape(name, shape); get_tensor_shape(name); set_tensor_address(name, memory);
        get_tensor_address(name); set_input_consumed_event(event); get_input_consumed_event();
        set_output_allocator(name, output_allocator); get_output_allocator(name); get_max_output_size(name);
        temporary_allocator; infer_shapes(); execute_async_v3(stream_handle); all_binding_shapes_specified ro;
        set_optimization_profile_async(profile_index, stream_handle); error_recorder; enqueue_emits_profile;
        report_to_profiler(); persistent_cache_limit; nvtx_verbosity; set_aux_streams(aux_streams)
    8 10: all_shape_inputs_specified ro
    8: execute(batch_size = 1, bindings); execute_async(batch_size = 1, bindings, stream_handle, input_consumed?);
        execute_async_v2(bindings, stream_handle, input_consumed?); active_optimization_profile; get_strides(binding);
        set_binding_shape(binding, shape); get_binding_shape(binding); set_shape_input(binding, shape);
        get_shape(binding)
    10 11: set_device_memory(memory, size); update_device_memory_size_for_shapes(); active_optimization_profile ro;
        set_debug_listener(listener); get_debug_listener(); set_tensor_debug_state(name, flag); get_debug_state(name);
        set_all_tensors_debug_state(flag); unfused_tensors_debug_state; set_communicator(communicator);
        get_runtime_config()
IExprBuilder: 10 11
    10 11: __init__(); constant(); operation(); declare_size_tensor()
IFillLayer: 8 10 11
    all: shape; operation; alpha; beta; set_input(index, tensor)
    10 11: to_type; is_alpha_beta_int64()
IFullyConnectedLayer: 8
    8: num_output_channels; kernel; bias
IGatherLayer: 8 10 11
    all: axis; num_elementwise_dims; mode
IGpuAllocator: 8 10 11
    all: __init__(); allocate(size, alignment, flags); reallocate(address, alignment, new_size); deallocate(memory)
    8: free(memory)
    10 11: allocate_async(size, alignment, flags, stream); deallocate_async(memory, stream)
IGpuAsyncAllocator: 10 11
    10 11: __init__(); allocate(size, alignment, flags); deallocate(memory); allocate_async(size, alignment, flags,
        stream); deallocate_async(memory, stream)
IGridSampleLayer: 8 10 11
    all: interpolation_mode; align_corners; sample_mode
IHostMemory: 8 10 11
    all: dtype ro; nbytes ro
IIdentityLayer: 8 10 11
IIfConditional: 8 10 11
    all: set_condition(condition); add_output(true_subgraph_output, false_subgraph_output); add_input(input); name
IIfConditionalBoundaryLayer: 8 10 11
    all: conditional ro
IIfConditionalInputLayer: 8 10 11
IIfConditionalOutputLayer: 8 10 11
IInt8Calibrator: 8 10
    8 10: __init__(); get_batch_size(); get_algorithm(); get_batch(names); read_calibration_cache();
        write_calibration_cache(cache)
IInt8EntropyCalibrator: 8 10
    8 10: __init__(); get_batch_size(); get_algorithm(); get_batch(names); read_calibration_cache();
        write_calibration_cache(cache)
IInt8EntropyCalibrator2: 8 10
    8 10: __init__(); get_batch_size(); get_algorithm(); get_batch(names); read_calibration_cache();
        write_calibration_cache(cache)
IInt8LegacyCalibrator: 8 10
    8 10: __init__(); get_batch_size(); get_algorithm(); get_batch(names); read_calibration_cache();
        write_calibration_cache(cache)
IInt8MinMaxCalibrator: 8 10
    8 10: __init__(); get_batch_size(); get_algorithm(); get_batch(names); read_calibration_cache();
        write_calibration_cache(cache)
IIteratorLayer: 8 10 11
    all: axis; reverse
IKVCacheUpdateLayer: 10 11
    10 11: cache_mode; set_input(index, tensor)
    11: update_form; update_lengths
ILRNLayer: 8 10 11
    all: window_size; alpha; beta; k
ILayer: 8 10 11
    all: name; metadata; type ro; num_inputs ro; num_outputs ro; set_input(index, tensor); get_input(index);
        get_output(index); get_output_type(index)
    8 10: precision; precision_is_set ro; reset_precision(); set_output_type(index, dtype); output_type_is_set(index);
        reset_output_type(index)
    10 11: num_ranks
ILoop: 8 10 11
    all: add_recurrence(initial_value); add_trip_limit(tensor, kind); add_iterator(tensor, axis = 0, reverse = false);
        add_loop_output(tensor, kind, axis = 0); name
ILoopBoundaryLayer: 8 10 11
    all: loop ro
ILoopOutputLayer: 8 10 11
    all: set_input(index, tensor); axis; kind ro
IMatrixMultiplyLayer: 8 10 11
    all: op0; op1
IMoELayer: 10 11
    10 11: set_gated_weights(fc_gate_weights, fc_up_weights, fc_down_weights, activation_type);
        set_gated_biases(fc_gate_biases, fc_up_biases, fc_down_biases); activation_type;
        set_quantization_static(fc_down_activation_scale, data_type);
        set_quantization_dynamic_dbl_q(fc_down_activation_dbl_q_scale, data_type, block_shape,
        dyn_q_output_scale_type); quantization_to_type; quantization_block_shape; dyn_q_output_scale_type;
        set_swiglu_params(limit, alpha, beta); swiglu_param_limit; swiglu_param_alpha; swiglu_param_beta;
        set_input(index, tensor)
INMSLayer: 8 10 11
    all: bounding_box_format; topk_box_limit; set_input(index, tensor)
    10 11: indices_type
INetworkDefinition: 8 10 11
    all: name; num_layers ro; num_inputs ro; num_outputs ro; has_implicit_batch_dimension ro; error_recorder;
        mark_output(tensor); add_input(name, dtype, shape); add_convolution_nd(input, num_output_maps, kernel_shape,
        kernel, bias?); add_activation(input, type); add_pooling_nd(input, type, window_size); add_lrn(input, window,
        alpha, beta, k); add_scale(input, mode, shift?, scale?, power?); add_scale_nd(input, mode, shift?, scale?,
        power?, channel_axis); add_softmax(input); add_concatenation(inputs); add_deconvolution_nd(input,
        num_output_maps, kernel_shape, kernel, bias?); add_elementwise(input1, input2, op); add_unary(input, op);
        add_padding_nd(input, pre_padding, post_padding); add_shuffle(input); add_slice(input, start, shape, stride);
        add_reduce(input, op, axes, keep_dims); add_topk(input, op, k, axes); add_gather(input, indices, axis);
        add_scatter(data, indices, updates, mode); add_gather_v2(input, indices, mode); add_ragged_softmax(input,
        bounds); add_matrix_multiply(input0, op0, input1, op1); add_constant(shape, weights); add_identity(input);
        add_cast(input, to_type); add_plugin_v2(inputs, plugin); add_parametric_relu(input, slopes);
        add_resize(input); add_loop(); add_shape(input); add_select(condition, then_input, else_input);
        add_assertion(condition, message); add_grid_sample(input, grid); add_nms(boxes, scores,
        max_output_boxes_per_class); add_if_conditional(); add_einsum(inputs, equation); add_one_hot(indices, values,
        depth, axis); add_non_zero(input); add_reverse_sequence(input, sequence_lens); add_normalization(input, scale,
        bias, axesMask); remove_tensor(tensor); unmark_output(tensor); mark_output_for_shapes(tensor);
        unmark_output_for_shapes(tensor); set_weights_name(weights, name); get_layer(index); get_input(index);
        get_output(index); builder ro; serialize(); __len__(); __getitem__()
    8 10: add_fill(shape, op); add_quantize(input, scale); add_dequantize(input, scale)
    8: has_explicit_precision ro; add_convolution(input, num_output_maps, kernel_shape, kernel, bias?);
        add_fully_connected(input, num_outputs, kernel, bias?); add_pooling(input, type, window_size);
        add_deconvolution(input, num_output_maps, kernel_shape, kernel, bias?); add_padding(input, pre_padding,
        post_padding); add_rnn_v2(input, layer_count, hidden_size, max_seq_length, op)
    10 11: mark_weights_refittable(name); are_weights_marked_refittable(name); add_topk(input, op, k, axes,
        indices_type); add_plugin_v3(inputs, shape_inputs, plugin); add_plugin(tuple); add_plugin(func);
        add_plugin(func, aot); add_nms(boxes, scores, max_output_boxes_per_class, indices_type); add_quantize(input,
        scale, output_type); add_dequantize(input, scale, output_type); add_dynamic_quantize(input, axis, block_size,
        output_type, scale_type); add_dynamic_quantize_v2(input, block_shape, output_type, scale_type);
        add_non_zero(input, indices_type); add_cumulative(input, axis, op, exclusive, reverse); add_attention(query,
        key, value, norm_op, causal); add_rotary_embedding(input, cos_cache, sin_cache, interleaved,
        rotary_embedding_dim); add_kv_cache_update(cache, update, write_indices, cache_mode); add_moe(hidden_states,
        selected_experts_for_tokens, scores_for_selected_experts); unmark_weights_refittable(name); flags ro;
        get_flag(flag); mark_debug(tensor); unmark_debug(tensor); is_debug_tensor(tensor);
        mark_unfused_tensors_as_debug_tensors(); unmark_unfused_tensors_as_debug_tensors(); add_squeeze(input, axes);
        add_unsqueeze(input, axes); add_normalization_v2(input, scale, bias, axesMask); add_dist_collective(input,
        dist_collective_op, reduce_op, root, groups)
    10: add_fill(shape, op, output_type)
    11: add_fill(shape, op, output_type = FLOAT); add_attention_v2(query, key, value, norm_op, causal_kind)
INonZeroLayer: 8 10 11
    10 11: indices_type
INormalizationLayer: 8 10 11
    all: epsilon; axes; num_groups
    8 10: compute_precision
    10 11: is_v2 ro
IOneHotLayer: 8 10 11
    all: axis
IOptimizationProfile: 8 10 11
    all: set_shape(input, min, opt, max); get_shape(input); set_shape_input(input, min, opt, max);
        get_shape_input(input); extra_memory_target
IOutputAllocator: 8 10 11
    all: __init__()
    8: tensorrt_version ro; reallocate_output(tensor_name, memory, size, alignment); notify_shape(tensor_name, shape)
IPaddingLayer: 8 10 11
    all: pre_padding_nd; post_padding_nd
    8: pre_padding; post_padding
IParametricReLULayer: 8 10 11
IPluginCapability: 10 11
IPluginCreator: 8 10 11
    all: plugin_namespace; create_plugin(name, field_collection); deserialize_plugin(name, serialized_plugin)
    8: tensorrt_version ro; name ro; plugin_version ro; field_names ro
    10 11: __init__(); name; plugin_version; field_names
IPluginCreatorInterface: 10 11
IPluginCreatorV3One: 10 11
    10 11: __init__(); name; plugin_version; field_names; plugin_namespace; create_plugin(name, field_collection,
        phase)
IPluginCreatorV3Quick: 10 11
    10 11: __init__(); name; plugin_version; field_names; plugin_namespace; create_plugin(name, namespace,
        field_collection, phase, quickPluginType)
IPluginRegistry: 8 10 11
    all: register_creator(creator, plugin_namespace = ""); deregister_creator(creator); error_recorder;
        parent_search_enabled; load_library(plugin_path); deregister_library(handle)
    8 10: plugin_creator_list ro; get_plugin_creator(type, version, plugin_namespace = "")
    10 11: all_creators ro; all_creators_recursive ro; get_creator(type, version, plugin_namespace = "");
        acquire_plugin_resource(key, resource); release_plugin_resource(key)
IPluginResource: 10 11
    10 11: __init__(); release(); clone()
IPluginResourceContext: 10 11
    10 11: error_recorder ro; gpu_allocator ro
IPluginV2: 8 10 11
    all: tensorrt_version ro; plugin_namespace; get_output_shape(index, input_shapes); supports_format(dtype, format);
        configure_with_format(input_shapes, output_shapes, dtype, format, max_batch_size); initialize(); terminate();
        get_workspace_size(max_batch_size); execute_async(batch_size, inputs, outputs, workspace, stream_handle);
        serialization_size ro; serialize(); destroy(); clone()
    8: num_outputs ro; plugin_type ro; plugin_version ro
    10 11: num_outputs; plugin_type; plugin_version
IPluginV2DynamicExt: 10 11
    10 11: __init__(); FORMAT_COMBINATION_LIMIT ro; initialize(); terminate(); serialize(); get_output_datatype(index,
        input_types); destroy(); get_serialization_size(); get_output_dimensions(output_index, inputs, expr_builder);
        get_workspace_size(in, out); configure_plugin(pos, in_out); supports_format_combination(pos, in_out,
        num_inputs); enqueue(input_desc, output_desc, inputs, outputs, workspace, stream); clone()
IPluginV2DynamicExtBase: 10 11
IPluginV2Ext: 8 10 11
    all: get_output_data_type(index, input_types); configure_plugin(input_shapes, output_shapes, input_types,
        output_types, input_is_broadcasted, output_is_broacasted, format, max_batch_size); attach_to_context(cudnn,
        cublas, allocator); detach_from_context(); clone()
IPluginV2Layer: 8 10 11
    all: plugin ro
IPluginV3: 10 11
    10 11: __init__(); get_capability_interface(type); clone(); destroy()
IPluginV3Layer: 10 11
    10 11: plugin ro
IPluginV3OneBuild: 10 11
    10 11: __init__(); DEFAULT_FORMAT_COMBINATION_LIMIT ro; num_outputs; format_combination_limit; metadata_string;
        timing_cache_id; get_output_data_types(input_types); get_output_shapes(inputs, shape_inputs, expr_builder);
        get_workspace_size(in, out); configure_plugin(in, out); supports_format_combination(pos, in_out, num_inputs);
        get_valid_tactics()
IPluginV3OneBuildV2: 10 11
    10 11: __init__(); get_aliased_input()
IPluginV3OneCore: 10 11
    10 11: __init__(); plugin_name; plugin_version; plugin_namespace
IPluginV3OneRuntime: 10 11
    10 11: __init__(); on_shape_change(in, out); set_tactic(tactic); get_fields_to_serialize(); enqueue(input_desc,
        output_desc, inputs, outputs, workspace, stream); attach_to_context(resource_context)
IPluginV3QuickAOTBuild: 10 11
    10 11: __init__()
IPluginV3QuickBuild: 10 11
    10 11: __init__()
IPluginV3QuickCore: 10 11
    10 11: __init__(); plugin_name; plugin_version; plugin_namespace
IPluginV3QuickRuntime: 10 11
    10 11: __init__()
IPoolingLayer: 8 10 11
    all: type; pre_padding; post_padding; padding_mode; blend_factor; average_count_excludes_padding; window_size_nd;
        stride_nd; padding_nd
    8: window_size; stride; padding
IProfiler: 8 10 11
    all: __init__(); report_layer_time(layer_name, ms)
IProgressMonitor: 10 11
    10 11: __init__(); phase_start(phase_name, parent_phase, num_steps); step_complete(phase_name, step);
        phase_finish(phase_name)
IQuantizeLayer: 8 10 11
    all: axis
    10 11: block_shape; to_type
IRNNv2Layer: 8
    8: num_layers ro; hidden_size ro; max_seq_length ro; data_length ro; seq_lengths; op; input_mode; direction;
        set_weights_for_gate(layer_index, gate, is_w, weights); get_weights_for_gate(layer_index, gate, is_w);
        set_bias_for_gate(layer_index, gate, is_w, bias); get_bias_for_gate(layer_index, gate, is_w); hidden_state;
        cell_state
IRaggedSoftMaxLayer: 8 10 11
IRecurrenceLayer: 8 10 11
    all: set_input(index, tensor)
IReduceLayer: 8 10 11
    all: op; axes; keep_dims
IResizeLayer: 8 10 11
    all: shape; scales; resize_mode; coordinate_transformation; selector_for_single_pixel; nearest_rounding;
        exclude_outside; cubic_coeff; set_input(index, tensor)
IReverseSequenceLayer: 8 10 11
    all: batch_axis; sequence_axis
IRotaryEmbeddingLayer: 10 11
    10 11: interleaved; rotary_embedding_dim; set_input(index, tensor)
IRuntimeConfig: 10 11
    10 11: set_execution_context_allocation_strategy(); get_execution_context_allocation_strategy()
IScaleLayer: 8 10 11
    all: mode; shift; scale; power; channel_axis
IScatterLayer: 8 10 11
    all: axis; mode
ISelectLayer: 8 10 11
ISerializationConfig: 10 11
    10 11: flags; clear_flag(flag); set_flag(flag); get_flag(flag)
IShapeLayer: 8 10 11
IShuffleLayer: 8 10 11
    all: first_transpose; reshape_dims; second_transpose; zero_is_placeholder; set_input(index, tensor)
ISliceLayer: 8 10 11
    all: start; shape; stride; mode; set_input(index, tensor)
    10 11: axes
ISoftMaxLayer: 8 10 11
    all: axes
ISqueezeLayer: 10 11
    10 11: set_input(index, tensor)
IStreamReader: 10
    10: __init__(); read(destination, size)
IStreamReaderV2: 10 11
    10 11: __init__(); read(destination, num_bytes, stream); seek(offset, where)
IStreamWriter: 10 11
    10 11: __init__(); write(data, size)
ISymExpr: 10 11
    10 11: __init__(); type; dtype; expr
ISymExprs: 10 11
    10 11: nbSymExprs; __len__(); __getitem__(); __setitem__()
ITensor: 8 10 11
    all: name; shape; broadcast_across_batch; location; allowed_formats; is_network_input ro; is_network_output ro;
        is_shape_tensor ro; is_execution_tensor ro; set_dimension_name(index, name); get_dimension_name(index)
    8 10: dtype; dynamic_range; set_dynamic_range(min, max); reset_dynamic_range()
    11: dtype ro
ITimingCache: 8 10 11
    all: serialize(); combine(input_cache, ignore_mismatch); reset()
    10 11: queryKeys(); query(key); update(key, value)
ITopKLayer: 8 10 11
    all: op; k; axes; set_input(index, tensor)
    10 11: indices_type
ITripLimitLayer: 8 10 11
    all: kind ro
IUnaryLayer: 8 10 11
    all: op
IUnsqueezeLayer: 10 11
    10 11: set_input(index, tensor)
IVersionedInterface: 10 11
    10 11: api_language ro; interface_info ro
InterfaceInfo: 10 11
    10 11: kind; major; minor
KernelLaunchParams: 10 11
    10 11: grid_x; grid_y; grid_z; block_x; block_y; block_z; shared_mem
Logger: 8 10 11
    all: __init__(min_severity = WARNING); min_severity; log(severity, msg)
OnnxParser: 8 10 11
    all: __init__(network, logger); parse(model, path?); parse_from_file(model); supports_operator(op_name);
        num_errors ro; get_error(index); clear_errors(); flags; clear_flag(flag); set_flag(flag); get_flag(flag);
        get_used_vc_plugin_libraries()
    8 10: parse_with_weight_descriptors(model); supports_model(model, path?)
    10 11: supports_model_v2(model, path?); num_subgraphs ro; is_subgraph_supported(index); get_subgraph_nodes(index);
        get_layer_output_tensor(name, i); load_model_proto(model, path?); load_initializer(name, data, size);
        parse_model_proto(); set_builder_config(builder_config)
OnnxParserRefitter: 10 11
    10 11: __init__(refitter, logger); refit_from_bytes(model, path?); refit_from_file(model); num_errors ro;
        get_error(index); clear_errors(); load_model_proto(model, path?); load_initializer(name, data, size);
        refit_model_proto()
ParserError: 8 10 11
    all: code(); desc(); file(); line(); func(); node()
    10 11: node_name(); node_operator(); local_function_stack(); local_function_stack_size()
Permutation: 8 10 11
    all: __init__(); __getitem__(); __setitem__(); __len__()
PluginField: 8 10 11
    all: __init__(name = ""); __init__(name, data, type = UNKNOWN); name; data; type; size
PluginFieldCollection_: 8 10 11
    all: __init__(); __len__(); __getitem__()
PluginTensorDesc: 10 11
    10 11: __init__(); dims; type; format; scale
Profiler: 8 10 11
    all: __init__(); report_layer_time(layer_name, ms)
Refitter: 8 10 11
    all: __init__(engine, logger); set_weights(layer_name, role, weights); set_named_weights(name, weights);
        refit_cuda_engine(); get_missing(); get_missing_weights(); get_all(); get_all_weights(); error_recorder;
        logger ro; max_threads
    8 10: get_dynamic_range(tensor_name); set_dynamic_range(tensor_name, range); get_tensors_with_dynamic_range()
    10 11: set_named_weights(name, weights, location); get_named_weights(weights_name);
        get_weights_location(weights_name); unset_named_weights(weights_name); weights_validation;
        refit_cuda_engine_async(stream_handle); get_weights_prototype(weights_name)
Runtime: 8 10 11
    all: __init__(logger); deserialize_cuda_engine(serialized_engine); DLA_core; num_DLA_cores ro; gpu_allocator;
        error_recorder; logger ro; max_threads; temporary_directory; tempfile_control_flags; get_plugin_registry();
        load_runtime(path); engine_host_code_allowed
    10 11: deserialize_cuda_engine(stream_reader_v2)
    10: deserialize_cuda_engine(stream_reader)
TimingCacheKey: 10 11
    10 11: parse(text)
TimingCacheValue: 10 11
    10 11: __init__(); tacticHash; timingMSec
Weights: 8 10 11
    all: __init__(type = FLOAT); __init__(a); dtype ro; size ro; nbytes ro; numpy(); __len__()
    10 11: __init__(type, ptr, count)
"""
